"""Record keys: what a table may be created with, and what stays fixed from then on."""

from datetime import date
from typing import Any

import pyarrow as pa
import pytest

from tallymark.engine.errors import InvalidRequest, UnsupportedTable
from tallymark.engine.timeline.entry import DataFile
from tallymark.engine.timeline.java_properties import load, store
from tallymark.engine.timeline.properties import PROPERTIES, TableProperties
from tallymark.engine.timeline.table_key import TableKey
from tests.engine.jobs.scene import table, write_in_thread
from tests.engine.tasks.scene import schema_of
from tests.support.loops import on_both_loops

ORDERS = schema_of(id=pa.int64(), day=pa.date32(), at=pa.timestamp("us"), price=pa.float64())
KEYED: dict[str, Any] = {"record_key": ["id"], "order_by": "at", "unique_in": "partition", "readers": "table"}
BY_DAY: dict[str, Any] = {"schema": ORDERS, "mode": "append", "partition_by": ["day"]}


async def write(backend, **named):
    async with table(backend).write(**{**BY_DAY, **named}) as job:
        await job.commit([])


async def key_of(backend) -> TableKey | None:
    found = await table(backend).properties()
    assert found is not None
    return found.key


async def test_the_first_write_fixes_the_key_and_later_ones_may_repeat_it_or_leave_it_out(staged):
    await write(staged.backend, **KEYED)
    await write(staged.backend)
    await write(staged.backend, record_key="id")
    assert await key_of(staged.backend) == TableKey(record_key=("id",), order_by=("at",), unique_in="partition")


@pytest.mark.parametrize(
    ("named", "unique_in"),
    [({"partition_by": ()}, "table"), ({"record_key": ["id", "day"]}, "partition"), ({"unique_in": "table"}, "table")],
    ids=str,
)
async def test_where_a_key_is_unique_is_left_out_only_where_both_choices_are_the_same(staged, named, unique_in):
    await write(staged.backend, **{"record_key": "id", "readers": "directory", **named})
    found = await key_of(staged.backend)
    assert found is not None
    assert found.unique_in == unique_in


@pytest.mark.parametrize(
    ("named", "error"),
    [
        ({"unique_in": None}, "say 'partition', where a row whose .* or 'table', where such a row is deleted"),
        ({"unique_in": "day"}, "unique_in='day': say 'partition'"),
        ({"readers": None}, "say 'directory', where replaced files are deleted .* or 'table', where each version"),
        ({"record_key": None}, "order_by describes rows of one record_key"),
        ({"record_key": None, "order_by": None}, "unique_in describes rows of one record_key"),
        ({"record_key": []}, r"record_key=\(\): name at least one column"),
        ({"record_key": 3}, "record_key=3: give a column's name, or a list"),
        ({"record_key": ["id", "id"]}, "record_key names 'id' twice"),
        ({"record_key": ["order"]}, "record_key names 'order', which is not a top-level column of the schema; .* 'id'"),
        ({"record_key": ["price"]}, "record_key names 'price', which is double"),
        ({"order_by": ["price"]}, "order_by names 'price', which is double"),
        ({"order_by": ["id"]}, "order_by names 'id', a column of record_key"),
    ],
    ids=str,
)
async def test_a_key_that_no_table_can_have_is_refused_and_nothing_is_created(staged, named, error):
    with pytest.raises(InvalidRequest, match=error):
        await write(staged.backend, **{**KEYED, **named})
    assert not staged.objects


@pytest.mark.parametrize(
    ("named", "error"),
    [
        ({"record_key": ["day"]}, r"record_key=\['day'\]: the table was created with record_key=\['id'\]"),
        ({"record_key": "id", "order_by": "day"}, "created with order_by="),
        ({"record_key": "id", "unique_in": "table"}, "unique_in='table': the table was created with .*'partition'"),
    ],
    ids=str,
)
async def test_the_key_of_a_table_is_fixed(staged, named, error):
    await write(staged.backend, **KEYED)
    with pytest.raises(InvalidRequest, match=error):
        await write(staged.backend, **named)


async def test_a_table_without_a_key_gets_none_later(staged):
    await write(staged.backend)
    with pytest.raises(InvalidRequest, match="created without a record key, which is fixed; leave record_key out"):
        await write(staged.backend, record_key="id")


@on_both_loops
async def test_a_row_whose_key_is_null_fails_its_task(staged):
    async with table(staged.backend).write(**BY_DAY, **KEYED) as job:
        with pytest.raises(InvalidRequest, match="'id'"):
            await write_in_thread(job, staged.backend, pa.Table.from_pylist([{"id": None}], schema=ORDERS))


async def test_a_release_that_does_not_know_keys_refuses_the_table_by_the_name_of_the_feature(staged, monkeypatch):
    await write(staged.backend, **KEYED)
    monkeypatch.setattr("tallymark.engine.timeline.entry.READER_FEATURES", frozenset())
    with pytest.raises(UnsupportedTable, match="needs of each reader the feature changes"):
        await table(staged.backend).snapshot()
    monkeypatch.undo()
    monkeypatch.setattr("tallymark.engine.timeline.entry.WRITER_FEATURES", frozenset())
    with pytest.raises(UnsupportedTable, match="needs of each writer the feature changes"):
        await write(staged.backend)


async def test_properties_of_hudi_name_no_key(staged):
    """Its writers refuse the table for that."""
    await write(staged.backend, **KEYED)
    found = load(staged.objects[PROPERTIES], source="")
    assert not [name for name in found if "recordkey" in name or "precombine" in name]
    assert TableProperties.decode(store(found)).key == await key_of(staged.backend)


@on_both_loops
async def test_files_carry_the_range_of_their_keys_in_the_log_and_in_views_and_checkpoints(staged):
    rows = [{"id": number, "day": date(2026, 11, 1 + number % 2)} for number in (7, -2, 300, 4)]
    async with table(staged.backend).write(**BY_DAY, **KEYED) as job:
        await job.commit([await write_in_thread(job, staged.backend, pa.Table.from_pylist(rows, schema=ORDERS))])
    ranges = {
        "day=2026-11-01": (1, (-2, 300)),
        "day=2026-11-02": (1, (7, 7)),
    }
    await table(staged.backend).checkpoint()
    for files in (
        (await table(staged.backend).timeline())[0][1].added,
        (await table(staged.backend).snapshot()).files,
    ):
        assert {file.partition: bounds_of(file) for file in files} == ranges


def bounds_of(file: DataFile) -> tuple[int, tuple[int, int]]:
    [bounds] = file.bounds
    lower, upper = (int.from_bytes(bound or b"") - 2**63 for bound in (bounds.lower, bounds.upper))
    return bounds.field_id, (lower, upper)


@on_both_loops
async def test_a_table_without_a_key_records_no_bounds(staged):
    async with table(staged.backend).write(**BY_DAY) as job:
        await job.commit([await write_in_thread(job, staged.backend, pa.Table.from_pylist([{"id": 1}], schema=ORDERS))])
    [file] = (await table(staged.backend).snapshot()).files
    assert file.bounds == ()
