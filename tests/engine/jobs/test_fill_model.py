"""Any history of appends that fill small files, rivals, overwrites and failed tasks leaves what a plain dict says."""

import tempfile
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from urllib.parse import quote

import duckdb
import pyarrow as pa
import pyarrow.dataset as ds
import pytest
import trio
from hudi import HudiTable
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from tests.engine.jobs.fill_histories import FULL, Disk, Model, Place, Rounds, append, histories, play
from tests.engine.jobs.scene import Store, rows_in
from tests.support.examples import examples
from tests.table_invariants import overwrites_replace_what_their_base_held, table_is_at_rest

pytestmark = pytest.mark.no_cover

Row = tuple[int, int]
"""A flight, and its month."""


def held(place: Place) -> list[Row]:
    return sorted((row["flight"], row["month"]) for row in rows_in(place.objects))


def is_as_the_model_says(place: Place, model: Model) -> None:
    assert held(place) == sorted(model.states[-1].items())
    table_is_at_rest(place.objects)
    overwrites_replace_what_their_base_held(place.objects)


def played(place: Place, rounds: Rounds, check: Callable[[Model], None]) -> Counter[str]:
    return trio.run(play, place, rounds, check)


@settings(max_examples=examples(150), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(rounds=histories, has_staging=st.booleans())
def test_the_table_is_what_a_plain_dict_says(rounds, has_staging):
    store = Store(has_staging=has_staging)
    for what in played(store, rounds, partial(is_as_the_model_says, store)):
        event(what)


@pytest.mark.parametrize("count", [2, 3])
def test_of_rivals_for_one_small_file_all_rows_are_there_once(store, count):
    rivals = [(append(1, 1, 2), -number) for number in range(count)]
    told = played(store, [[(append(1, 2), 0)], rivals], partial(is_as_the_model_says, store))
    assert (told["fills"], told["loses fills"]) == (1, count - 1)


@settings(max_examples=examples(8), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(rounds=histories)
def test_readers_that_know_nothing_of_this_library_see_what_a_plain_dict_says(rounds):
    with tempfile.TemporaryDirectory() as directory:
        disk = Disk(Path(directory) / "table")

        def check(model: Model) -> None:
            is_as_the_model_says(disk, model)
            wanted = sorted(model.states[-1].items())
            for reader, read in READERS.items() if wanted else ():
                assert sorted(read(disk.path)) == wanted, f"{reader} sees other rows"

        played(disk, [[(FULL, 0)], *rounds], check)


def read_by_duckdb(path: Path) -> list[Row]:
    with duckdb.connect() as connection:
        query = "SELECT flight, month FROM read_parquet($1, hive_partitioning = false)"
        found: list[Row] = connection.execute(query, [f"{path}/**/*.parquet"]).fetchall()
        return found


def read_by_hudi(path: Path) -> list[Row]:
    return rows(pa.Table.from_batches(HudiTable("file://" + quote(str(path))).read()))


def read_by_pyarrow(path: Path) -> list[Row]:
    return rows(ds.dataset(str(path), format="parquet", partitioning=None).to_table())


READERS = {
    "DuckDB": read_by_duckdb,
    "hudi-rs": read_by_hudi,
    "pyarrow": read_by_pyarrow,
}


def rows(table: pa.Table) -> list[Row]:
    return [(row["flight"], row["month"]) for row in table.to_pylist()]
