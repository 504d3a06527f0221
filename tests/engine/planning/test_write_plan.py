"""What a plan foretells, beside what the write of the same words then does; and that planning puts nothing."""

import json
from typing import Any

import pyarrow as pa
import pytest

from tallymark.backends.measured import MeasuredBackend
from tallymark.backends.meter import RequestMeter
from tallymark.engine.errors import ConflictError, InvalidRequest, UnsupportedTable
from tallymark.engine.planning.input_rows import CountedRows
from tallymark.engine.planning.write_plan import WritePlan
from tallymark.engine.settings import SizingSettings
from tallymark.engine.sizing import WorkloadProfile
from tallymark.engine.sizing.profile import FileUpdates
from tallymark.engine.timeline.entry import DataFile
from tallymark.engine.timeline.scope import Scope
from tests.engine.jobs.scene import FLIGHTS, Store, committed, table

pytestmark = pytest.mark.usefixtures("loop")

UPDATES = (FileUpdates(DataFile("month=1", "f", 1, 1), 1),)


def rows_of(*counts: tuple[int | None, int]) -> CountedRows:
    """Month and rows, for each task and month."""
    months = pa.array([month for month, _ in counts], pa.int32())
    return CountedRows(pa.RecordBatch.from_arrays([months], ["month"]), [rows for _, rows in counts])


async def planned(store: Store, mode: Any = "append", **named) -> WritePlan:
    """Planning asks and puts nothing: storage is as it was, down to its times, and no request could have changed it."""
    before, times = store.objects, store.modified
    meter = RequestMeter()
    plan = await table(MeasuredBackend(store.backend, meter)).plan(mode=mode, **named)
    assert (store.objects, store.modified) == (before, times)
    assert {found.request_class for found in meter.statistics().classes} <= {"get", "list"}
    return plan


async def test_a_static_overwrite_foretells_exactly_the_files_that_then_go(store):
    await committed(store.backend, months={1: 3, 2: 2})
    before = store.committed_files
    plan = await planned(store, "overwrite", incoming=rows_of((2, 5), (3, 1)))
    assert {file.path for file in plan.removed} == before
    assert (plan.scope, plan.removed_rows, plan.removed_bytes) == (
        Scope(is_all=True),
        5,
        sum(len(store.objects[path]) for path in before),
    )
    assert [(each.partition, each.change, each.files, each.rows) for each in plan.partitions] == [
        ("month=1", "emptied", 0, 0),
        ("month=2", "replaced", 1, 5),
        ("month=3", "new", 1, 1),
    ]
    await committed(store.backend, "overwrite", months={2: 5, 3: 1})
    assert not before & store.committed_files


async def test_a_dynamic_overwrite_takes_only_the_partitions_of_its_rows(staged):
    await committed(staged.backend, months={1: 3, 2: 2})
    for incoming in (rows_of((2, 5)), ["month=2"], ["month=2/", "month=2"]):
        plan = await planned(staged, "overwrite", partition_overwrite="dynamic", incoming=incoming)
        assert plan.scope == Scope(partitions=frozenset({"month=2"}))
        assert [each.partition for each in plan.partitions] == ["month=2"]
        assert [file.partition for file in plan.removed] == ["month=2"]


async def test_a_static_partition_goes_whole_though_nothing_is_known_of_the_rows(unstaged):
    await committed(unstaged.backend, months={1: 3, 2: 2})
    plan = await planned(unstaged, "overwrite", partition={"month": 1})
    assert [(each.partition, each.change, each.files) for each in plan.partitions] == [("month=1", "replaced", None)]
    assert (plan.files, plan.rows, plan.bytes) == (None, None, None)
    assert plan.estimate == "unknown: the input was not described"


async def test_an_append_takes_nothing_and_says_which_partitions_are_new(staged):
    await committed(staged.backend, months={1: 3})
    plan = await planned(staged, incoming=rows_of((1, 1), (2, 1)))
    assert (plan.scope, plan.removed, plan.new_partitions) == (None, (), ("month=2",))
    assert [each.change for each in plan.partitions] == ["added to", "new"]


async def test_a_table_that_is_not_there_yet_would_be_created(unstaged):
    plan = await planned(unstaged, schema=FLIGHTS, partition_by=["month"], incoming=rows_of((1, 1)))
    assert (plan.is_created, plan.position, plan.new_partitions) == (True, 0, ("month=1",))
    with pytest.raises(UnsupportedTable, match="holds no table yet"):
        await planned(unstaged)


async def test_files_are_estimated_by_the_rows_of_each_task_and_the_bytes_of_a_row_here(staged):
    first = await committed(staged.backend, months={1: 100})
    bytes_a_row = first.bytes / 100
    sizing = SizingSettings(max_file_bytes=int(10 * bytes_a_row), small_file_bytes=0)
    plan = await planned(staged, incoming=rows_of((1, 5), (1, 25), (2, 10)), sizing=sizing)
    assert (plan.rows, plan.bytes) == (40, round(40 * bytes_a_row))
    assert plan.files == 1 + 3 + 1 + (10 * bytes_a_row > sizing.max_file_bytes)


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ({"mode": "merge"}, "say 'append' or 'overwrite'"),
        ({"mode": "overwrite", "partition_overwrite": "dynamic"}, "the partitions of its rows"),
        ({"mode": "overwrite", "only_partitions": {"month": 1}}, "replaces the whole table"),
        ({"mode": "append", "partition_by": ["flight"]}, "the table is partitioned by"),
        ({"mode": "append", "partition": {"day": 1}}, "is not a partition column"),
        ({"mode": "append", "readers": "table"}, "which is fixed"),
        ({"mode": "overwrite", "base": 7}, "the log ends at position 1"),
        ({"mode": "append", "schema": pa.schema([("flight", pa.int64())])}, "column 'month' of the table"),
        ({"mode": "append", "incoming": "month=1"}, "give a list of partition paths"),
        ({"mode": "append", "incoming": ["day=1"]}, "the table is partitioned by"),
        ({"mode": "append", "incoming": [""]}, "names 0 of the columns"),
        (
            {"mode": "append", "incoming": WorkloadProfile(incoming=(), updates=UPDATES)},
            "updates of 1 files, .* month=1/f",
        ),
        ({"mode": "append", "sizing": "default"}, "sizing='default' is not a SizingSettings"),
        # and of rows that were counted where its tasks would be
        ({"mode": "append", "partition": {"month": 1}, "incoming": rows_of((1, 1), (2, 1))}, "a row has month=2"),
        (
            {"mode": "append", "partition": {"month": 1}, "incoming": ["month=2"]},
            "'month=2' of the input is outside of",
        ),
        (
            {"mode": "append", "only_partitions": {"month": 1}, "incoming": rows_of((2, 1))},
            "a row belongs to partition 'month=2'",
        ),
    ],
    ids=str,
)
async def test_a_plan_is_refused_where_the_write_would_be(staged, words, why):
    await committed(staged.backend, months={1: 3})
    with pytest.raises(InvalidRequest, match=why):
        await planned(staged, **words)


async def test_rows_whose_partition_columns_are_all_given_lie_in_that_partition(staged):
    await committed(staged.backend, months={1: 3})
    no_keys = CountedRows(pa.RecordBatch.from_arrays([], []), [5, 2])
    plan = await planned(staged, "overwrite", partition={"month": 1}, incoming=no_keys)
    assert [(each.partition, each.rows, each.files) for each in plan.partitions] == [("month=1", 7, 2)]


async def test_what_was_replaced_since_the_base_conflicts_already(staged):
    await committed(staged.backend, months={1: 3, 2: 2})
    await committed(staged.backend, "overwrite", months={1: 1}, partition_overwrite="dynamic")
    with pytest.raises(ConflictError, match="overwritten since"):
        await planned(staged, "overwrite", base=1)
    plan = await planned(staged, "overwrite", base=1, partition_overwrite="dynamic", incoming=["month=2"])
    assert [file.partition for file in plan.removed] == ["month=2"]


async def test_a_txn_that_was_committed_before_leaves_nothing_to_do(unstaged):
    await committed(unstaged.backend, "overwrite", txn="job:1")
    plan = await planned(unstaged, "overwrite", txn="job:1", incoming=rows_of((1, 3)))
    assert (plan.committed_at, plan.removed, plan.partitions, plan.files) == (1, (), (), 0)
    assert "committed at position 1 before; this write would do nothing" in str(plan)
    assert (await planned(unstaged, "overwrite", txn="job:2")).committed_at is None
    with pytest.raises(InvalidRequest, match="txn='job:1' was committed at position 1"):
        await planned(unstaged, "append", txn="job:1")


async def test_replaced_files_of_a_table_that_retains_them_are_told_to_stay(staged):
    await committed(staged.backend, readers="table", retain_hours=2)
    plan = await planned(staged, "overwrite")
    assert (len(plan.removed), plan.retain_hours) == (2, 2.0)
    assert "retained for 2 hours" in str(plan)


async def test_a_plan_is_a_table_in_print_in_a_notebook_and_an_object_as_json(unstaged):
    await committed(unstaged.backend, months={1: 3})
    plan = await planned(unstaged, "overwrite", incoming=rows_of((2, 1)))
    for page in (str(plan), plan._repr_html_()):
        for fact in ("overwrite of everything", "1 files, 3 rows", "month=1", "emptied"):
            assert fact in page
    document = json.loads(plan.to_json())
    assert document["removed"] == [file.path for file in plan.removed]
    assert document["scope"] == {"all": True, "partitions": [], "prefixes": []}
    assert document["partitions"][1] == {
        "partition": "month=2",
        "is_new": True,
        "files": 1,
        "rows": 1,
        "removed_files": 0,
        "removed_rows": 0,
        "removed_bytes": 0,
        "planned": None,
        "rewritten_bytes": 0,
        "changed_rows": 0,
        "change": "new",
    }


async def test_null_and_the_empty_string_are_one_partition_in_a_plan_as_in_a_write(staged):
    fields: list[pa.Field[Any]] = [pa.field("flight", pa.int64()), pa.field("tail", pa.string())]
    schema = pa.schema(fields)
    keys = pa.RecordBatch.from_arrays([pa.array(["", None, "N1"])], ["tail"])
    plan = await planned(staged, schema=schema, partition_by=["tail"], incoming=CountedRows(keys, [1, 2, 3]))
    assert [(each.partition, each.rows) for each in plan.partitions] == [
        ("tail=N1", 3),
        ("tail=__HIVE_DEFAULT_PARTITION__", 3),
    ]
