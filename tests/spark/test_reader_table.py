"""Who reads a table right, and when: each cell of the tables in docs/reading.md, with the reader itself."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import anyio
import pytest
from pyspark.sql import SparkSession

from tallymark import open_table
from tests.spark.frozen import BEFORE, COMMITTED, REPLACED, UNCOMMITTED, Kind, Row, State, create, frozen, overwrite
from tests.spark.readers import given

pytestmark = pytest.mark.spark

RIGHT = "right"
EARLY = "sees uncommitted rows"
TWICE = "sees old and new"
BOTH = "sees old and new, and uncommitted rows"
GAP = "leaves rows out"
FAILS = "fails"
UNTRIED = "-"
"""It lists the files when rows are asked for: there is no moment in between at which a test could stop it."""

COLUMNS: dict[str, tuple[State, ...]] = {
    "at rest": ("at rest",),
    "while a job writes": ("while a job writes",),
    "while replaced files are deleted": ("before replaced files go", "while replaced files go"),
    "a scan that began before the overwrite": (),
}
"""And the states in which a table is frozen for it."""

CELLS: dict[Kind, dict[str, tuple[str, str, str, str]]] = {
    "directory": {
        "tallymark.read": (RIGHT, RIGHT, RIGHT, FAILS),
        "hudi-rs": (RIGHT, RIGHT, RIGHT, GAP),
        "Spark": (RIGHT, EARLY, TWICE, FAILS),
        "DuckDB": (RIGHT, EARLY, TWICE, UNTRIED),
        "polars": (RIGHT, EARLY, TWICE, UNTRIED),
        "pyarrow": (RIGHT, EARLY, TWICE, FAILS),
        "Daft": (RIGHT, EARLY, TWICE, UNTRIED),
        "Daft's read_hudi": (RIGHT, EARLY, TWICE, UNTRIED),
    },
    "table": {
        "tallymark.read": (RIGHT, RIGHT, RIGHT, RIGHT),
        "hudi-rs": (RIGHT, RIGHT, RIGHT, RIGHT),
        "Spark": (TWICE, BOTH, TWICE, RIGHT),
        "DuckDB": (TWICE, BOTH, TWICE, UNTRIED),
        "polars": (TWICE, BOTH, TWICE, UNTRIED),
        "pyarrow": (TWICE, BOTH, TWICE, RIGHT),
        "Daft": (TWICE, BOTH, TWICE, UNTRIED),
        "Daft's read_hudi": (TWICE, BOTH, TWICE, UNTRIED),
    },
}

OWN = "tallymark.read"


def _in_full(is_in_full: bool, *values: str) -> Any:
    """Leave a cell of another project's reader to the release, except of a table at rest."""
    return pytest.param(*values, marks=() if is_in_full else pytest.mark.release)


FROZEN = [
    _in_full(reader == OWN or state == "at rest", kind, state, reader, verdicts[column])
    for kind, readers in CELLS.items()
    for reader, verdicts in readers.items()
    for column, states in enumerate(COLUMNS.values())
    for state in states
]

SCANS = [
    _in_full(reader == OWN, kind, reader, verdicts[-1])
    for kind, readers in CELLS.items()
    for reader, verdicts in readers.items()
    if verdicts[-1] != UNTRIED
]


def verdict(fetch: Callable[[], Iterable[Row]], right: set[Row]) -> str:
    try:
        rows = list(fetch())
    except Exception:  # each reader has errors of its own
        return FAILS
    found = set(rows)
    assert len(rows) == len(found), "a row came twice"
    assert found <= right | REPLACED | COMMITTED | UNCOMMITTED, "rows that nobody wrote"
    if right - found:
        return GAP
    sees = (bool((found - right) & (REPLACED | COMMITTED)), bool(found & UNCOMMITTED))
    return {(False, False): RIGHT, (False, True): EARLY, (True, False): TWICE, (True, True): BOTH}[sees]


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Kind, State], Path]:
    """Each made once, whatever the number of its readers."""
    made: dict[tuple[Kind, State], Path] = {}

    def at(kind: Kind, state: State) -> Path:
        if (kind, state) not in made:
            made[kind, state] = frozen(tmp_path_factory.mktemp("frozen"), kind, state)
        return made[kind, state]

    return at


@pytest.mark.parametrize(("kind", "state", "reader", "seen"), FROZEN)
def test_what_a_reader_sees_of_a_table_that_stands_still(
    spark: SparkSession, tables: Callable[[Kind, State], Path], kind: Kind, state: State, reader: str, seen: str
) -> None:
    table = tables(kind, state)
    assert verdict(lambda: given(reader, spark, table)(), COMMITTED) == seen


@pytest.mark.parametrize(("kind", "reader", "seen"), SCANS)
def test_what_a_scan_sees_whose_files_are_overwritten_before_it_reads_them(
    spark: SparkSession, tmp_path: Path, kind: Kind, reader: str, seen: str
) -> None:
    anyio.run(create, tmp_path / "table", kind, backend="trio")
    fetch = given(reader, spark, tmp_path / "table")
    anyio.run(overwrite, tmp_path / "table", backend="trio")
    assert verdict(fetch, BEFORE) == seen


@pytest.mark.parametrize("reader", ["Spark", "DuckDB", "polars", "pyarrow", "Daft", "Daft's read_hudi"])
def test_once_all_replaced_files_are_gone_the_directory_of_a_table_is_read_right(
    spark: SparkSession, tmp_path: Path, reader: str
) -> None:
    anyio.run(create, tmp_path / "table", "table", backend="trio")
    anyio.run(overwrite, tmp_path / "table", backend="trio")
    anyio.run(clean_all, tmp_path / "table", backend="trio")
    assert verdict(lambda: given(reader, spark, tmp_path / "table")(), COMMITTED) == RIGHT


async def clean_all(table: Path) -> None:
    assert (await open_table(table).clean(retain_hours=0)).files == 2


@pytest.mark.parametrize("kind", CELLS)
def test_the_documentation_shows_these_cells(kind: Kind) -> None:
    page = (Path(__file__).parents[2] / "docs" / "reading.md").read_text()
    section = page.partition(f'## `readers="{kind}"`')[2].partition("\n## ")[0]
    assert f"| reader | {' | '.join(COLUMNS)} |" in section
    for reader, verdicts in CELLS[kind].items():
        assert f"| {reader} | {' | '.join(verdicts)} |" in section
