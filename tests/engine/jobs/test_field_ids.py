"""Field ids in every file of a table, and of what they take no part in."""

import io
from pathlib import Path
from typing import Any

import anyio
import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from hudi import HudiTable

from tallymark.backends.events import EventLog
from tallymark.engine.arrow.field_ids import FIELD_ID, with_field_ids
from tallymark.engine.settings import MarkerSettings
from tallymark.engine.sizing import IncomingRows, WorkloadProfile
from tallymark.engine.table import open_table
from tests.engine.jobs.filling import SIZING, one_a_partition
from tests.engine.jobs.scene import mark, name_of, table, write_in_thread
from tests.support.loops import on_both_loops
from tests.support.parquet import ids_of

PLACE = pa.struct([("city", pa.string()), ("codes", pa.list_(pa.int64()))])
COLUMNS: dict[str, pa.DataType] = {
    "id": pa.int64(),
    "part": pa.string(),
    "place": PLACE,
    "named": pa.map_(pa.string(), pa.list_(PLACE)),
}
NESTED = pa.schema(COLUMNS)
CLASHING = pa.schema([field.with_metadata({FIELD_ID: "1", b"note": b"kept"}) for field in NESTED])
OPTIONS: dict[str, Any] = {"partition_by": ["part"], "markers": MarkerSettings(kind="direct")}


def rows_of(*numbers: int, part: str = "a", schema: pa.Schema = NESTED) -> pa.Table:
    place = {"city": "x", "codes": [1, None]}
    rows = [{"id": number, "part": part, "place": place, "named": [("k", [place, None])]} for number in numbers]
    return pa.Table.from_pylist(rows, schema=schema)


def in_two_parts(of_a: int, of_b: int) -> pa.Table:
    return pa.concat_tables([rows_of(of_a), rows_of(of_b, part="b")])


async def append(target: Any, rows: pa.Table) -> None:
    async with target.write(schema=rows.schema, mode="append", **OPTIONS) as job:
        await job.commit([await write_in_thread(job, job._handle.backend, rows)])


@on_both_loops
async def test_every_file_has_the_ids_of_its_table(unstaged, monkeypatch):
    """Fences, and files with the rows of small files and of lost fills, too."""
    events: list[str] = []
    monkeypatch.setattr(EventLog, "info", lambda _, name, **__: events.append(name))
    target = table(unstaged.backend)
    async with target.write(schema=CLASHING, mode="append", **OPTIONS) as job:
        await mark(job, unstaged.backend, [f"part=a/{name_of(job, task=7)}"])
        await job.commit([await write_in_thread(job, unstaged.backend, in_two_parts(0, 1))])
    async with target.write(schema=NESTED, mode="append", sizing=SIZING, **OPTIONS) as job:
        profile = WorkloadProfile(incoming=(IncomingRows("part=a", 1), IncomingRows("part=b", 1)))
        planned = one_a_partition((await job.size(profile)).files)
        report = await write_in_thread(job, unstaged.backend, in_two_parts(2, 3), planned=planned)
        async with target.write(schema=NESTED, mode="overwrite", partition={"part": "b"}, **OPTIONS) as rival:
            await rival.commit([])
        await job.commit([report])
    assert "fill.recut" in events
    assert len(unstaged.committed_files) == 2

    schema, last = with_field_ids(NESTED)
    footers = {
        path: pq.read_metadata(io.BytesIO(data)) for path, data in unstaged.objects.items() if path.endswith(".parquet")
    }
    assert sorted(footer.num_rows for footer in footers.values()) == [0, 1, 2], "a fence, a lost fill's new row, a fill"
    for path, footer in footers.items():
        assert ids_of(footer.schema.to_arrow_schema()) == ids_of(schema), path
    properties = await target.properties()
    assert properties is not None
    assert properties.last_field_id == last == max(ids_of(schema).values())


@on_both_loops
async def test_ids_are_in_the_metadata_of_what_users_get_and_make_no_difference(staged):
    target = table(staged.backend)
    await append(target, rows_of(1, schema=CLASHING))
    await append(target, rows_of(2))
    snapshot, properties = await target.snapshot(), await target.properties()
    as_of = await target.snapshot(as_of=1)
    plan = await target.plan(mode="append", schema=CLASHING)
    assert properties is not None
    assert not plan.is_created
    for schema in (snapshot.schema, as_of.schema, properties.schema):
        assert schema.equals(NESTED)
        assert [str(field.type) for field in schema] == [str(field.type) for field in NESTED]
        assert ids_of(schema) == ids_of(with_field_ids(NESTED)[0])
        assert schema.field("id").metadata == {FIELD_ID: b"1", b"note": b"kept"}
    other = table(type(staged)(has_staging=True).backend)
    await append(other, rows_of(1, schema=snapshot.schema.remove(0).insert(1, snapshot.schema.field(0))))
    assert sorted(ids_of((await other.snapshot()).schema).values()) == sorted(ids_of(snapshot.schema).values())


@pytest.mark.parametrize("is_old", [False, True], ids=["all files with ids", "older files without"])
def test_files_with_and_without_ids_are_read_together(tmp_path: Path, is_old: bool) -> None:
    async def make() -> pa.Schema:
        target = open_table(str(tmp_path))
        await append(target, rows_of(1))
        await append(target, rows_of(2))
        return (await target.snapshot()).schema

    schema = anyio.run(make, backend="trio")
    paths = sorted(tmp_path.glob("part=a/*.parquet"))
    if is_old:
        [number] = pq.read_table(paths[0], partitioning=None)["id"].to_pylist()
        assert number is not None
        pq.write_table(rows_of(number), paths[0])
        assert set(ids_of(pq.read_schema(paths[0])).values()) == {-1}
    wanted = rows_of(1, 2).to_pylist()
    everything = f"{tmp_path}/*/*.parquet"
    with duckdb.connect() as connection:
        in_duckdb = connection.sql(f"FROM read_parquet('{everything}', hive_partitioning = true)").to_arrow_table()
    seen = {
        "pyarrow": ds.dataset([str(path) for path in paths], schema=schema, format="parquet").to_table(),
        "duckdb": in_duckdb.select(NESTED.names),
        "polars": pl.scan_parquet(everything).collect().to_arrow().select(NESTED.names),
        "hudi": pa.Table.from_batches(HudiTable(f"file://{tmp_path}").read()).select(NESTED.names),
    }
    for reader, found in seen.items():
        assert found.sort_by("id").to_pylist() == wanted, reader
