"""The simulation's model of a reader of the Hudi format is right: hudi-rs itself reads the same files and rows.

Storage as it was in the middle of runs is laid out on a disk, half-finished jobs, fences and dead writers' files too.
"""

import io
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hudi import HudiTable

from tests.history import Landed
from tests.promises import Replay
from tests.simulation.plan import draw
from tests.simulation.world import run
from tests.table_invariants import committed_files, hudi_files, timeline_instant

Row = tuple[int, int]

SEEDS = (0, 4, 17, 132, 161, 488, 1297, 2416)


def moments(seed: int) -> Iterator[dict[str, bytes]]:
    """Storage each time that a commit became visible to readers of the Hudi format."""
    replay = Replay(run(draw(seed)).history)
    for event in replay.events():
        if isinstance(event, Landed) and timeline_instant(event.path):
            yield dict(replay.storage)


def lay_out(storage: Mapping[str, bytes], base: Path) -> None:
    for path, data in storage.items():
        (base / path).parent.mkdir(parents=True, exist_ok=True)
        (base / path).write_bytes(data)


def rows_of(table: pa.Table) -> list[Row]:
    columns: list[Any] = [table.column("flight").to_pylist(), table.column("month").cast(pa.int32()).to_pylist()]
    return sorted(zip(*columns, strict=True))


def modelled_rows(storage: Mapping[str, bytes], files: frozenset[str] | set[str]) -> list[Row]:
    return sorted(row for path in files for row in rows_of(pq.ParquetFile(io.BytesIO(storage[path])).read()))


@pytest.mark.parametrize("seed", SEEDS)
def test_hudi_rs_reads_what_the_model_reads(seed, tmp_path):
    count = 0
    for count, storage in enumerate(moments(seed), start=1):
        base = tmp_path / str(count)
        lay_out(storage, base)
        batches = HudiTable(str(base)).read()
        found = rows_of(pa.Table.from_batches(batches)) if batches else []
        assert found == modelled_rows(storage, hudi_files(storage)), f"moment {count} of seed {seed}"
    assert count > 1


@pytest.mark.parametrize("seed", SEEDS)
def test_a_reader_of_the_plain_directory_reads_the_table_at_rest(seed, tmp_path):
    storage = run(draw(seed)).at_rest
    lay_out(storage, tmp_path)
    with duckdb.connect() as connection:
        found = connection.sql(f"SELECT flight, month FROM '{tmp_path}/**/month=*/*.parquet'").to_arrow_table()
    assert rows_of(found) == modelled_rows(storage, committed_files(storage))
