"""What a plan says of the sizes of files, beside what the job of the same words plans, and then does."""

import json
from typing import Any

import pyarrow as pa
import pytest

from tallymark.engine.errors import InvalidRequest
from tallymark.engine.planning.input_rows import CountedRows
from tallymark.engine.planning.write_plan import WritePlan
from tallymark.engine.settings import SizingSettings
from tallymark.engine.sizing import IncomingRows, Sample, WorkloadProfile
from tallymark.engine.sizing.profile import FileUpdates
from tallymark.engine.timeline.entry import DataFile
from tests.engine.jobs.filling import SIZING, Months, appended, filling_job, profile_of
from tests.engine.jobs.scene import FLIGHTS, Store, table
from tests.engine.planning.test_write_plan import planned, rows_of

pytestmark = pytest.mark.usefixtures("loop")

THREE_MONTHS = {1: range(5), 2: range(2), 3: range(1)}


async def sized_plan(store: Store, months: Months, **named: Any) -> WritePlan:
    """Of an append of these flights, counted by partition."""
    words = {"mode": "append", "sizing": SIZING, "incoming": profile_of(months).incoming, **named}
    return await planned(store, words.pop("mode"), **words)


async def test_a_plan_fills_the_files_that_the_job_of_the_same_words_then_fills(unstaged):
    await appended(unstaged.backend, {1: [1, 2], 2: [3]})
    small = unstaged.committed_files
    plan = await sized_plan(unstaged, THREE_MONTHS)
    async with filling_job(unstaged.backend, THREE_MONTHS) as (job, report):
        assert plan.sizing == await job.size(profile_of(THREE_MONTHS))
        result = await job.commit([report])
    assert plan.sizing is not None
    assert {file.path for file in plan.sizing.fills} == small - unstaged.committed_files == small
    assert (plan.files, plan.rows, plan.rewritten_bytes) == (
        result.files,
        8,
        sum(file.bytes for file in plan.sizing.fills),
    )
    assert [(each.partition, each.change, each.files, each.rows) for each in plan.partitions] == [
        ("month=1", "added to", 1, 5),
        ("month=2", "added to", 1, 2),
        ("month=3", "new", 1, 1),
    ]
    assert (plan.removed, plan.bytes) == ((), plan.sizing.inserted_bytes)


@pytest.mark.parametrize("policy", ["balanced", "hudi"])
async def test_a_plan_follows_the_policy_of_the_write(unstaged, policy):
    await appended(unstaged.backend, {1: [1]})
    sizing = SizingSettings(policy=policy, rewrite_budget=1000)
    plan = await sized_plan(unstaged, {1: range(9)}, sizing=sizing)
    async with filling_job(unstaged.backend, {1: range(9)}, sizing=sizing) as (job, _):
        assert plan.sizing == await job.size(profile_of({1: range(9)}))
    assert f"planned as the write would ({policy})" in plan.estimate


async def test_what_another_live_write_fills_is_left_out_of_a_plan(unstaged):
    await appended(unstaged.backend, {1: [1], 2: [2]})
    async with filling_job(unstaged.backend, {1: [3]}):
        plan = await sized_plan(unstaged, {1: [4], 2: [5]})
    assert plan.sizing is not None
    assert [file.partition for file in plan.sizing.fills] == ["month=2"]


async def test_bytes_that_were_counted_tell_more_than_rows(unstaged):
    await appended(unstaged.backend, {1: range(100)})
    short = await sized_plan(unstaged, {}, incoming=[IncomingRows("month=1", 1000, 12_000)])
    long = await sized_plan(unstaged, {}, incoming=[IncomingRows("month=1", 1000, 12_000_000)])
    assert short.bytes is not None
    assert long.bytes is not None
    assert long.bytes > 100 * short.bytes
    assert long.estimate == "from rows and bytes per partition, planned as the write would (balanced)"
    keys = pa.RecordBatch.from_arrays([pa.array([1, 1], pa.int32())], ["month"])
    by_task = await sized_plan(unstaged, {}, incoming=CountedRows(keys, [400, 600], [4_000_000, 8_000_000]))
    assert by_task.sizing == long.sizing
    assert "from rows per partition" in (await sized_plan(unstaged, {}, incoming=CountedRows(keys, [1, 2]))).estimate


async def test_a_sample_tells_of_a_table_that_is_not_there_yet(unstaged):
    named = {"schema": FLIGHTS, "partition_by": ["month"]}
    profile = WorkloadProfile(
        incoming=(IncomingRows("month=1", 100_000, 1_200_000),), sample=Sample(100_000, 1_200_000, 2_000_000)
    )
    plan = await sized_plan(unstaged, {}, incoming=profile, **named)
    assert plan.bytes == pytest.approx(2_000_000, rel=0.01)
    guessed = await sized_plan(unstaged, {}, incoming=profile.incoming, **named)
    assert guessed.bytes is not None
    assert guessed.bytes < 1_000_000
    assert guessed.estimate.endswith("guessed, for lack of files and of a sample")
    assert "guessed" not in plan.estimate


@pytest.mark.parametrize("sizing", [None, SizingSettings(small_file_bytes=0)])
async def test_with_sizing_off_a_plan_says_nothing_of_sizes(unstaged, sizing):
    await appended(unstaged.backend, {1: [1]})
    plan = await sized_plan(unstaged, {}, sizing=sizing, incoming=rows_of((1, 5), (1, 5)))
    assert (plan.sizing, plan.files, plan.rewritten_bytes) == (None, 2, 0)
    assert [each.planned for each in plan.partitions] == [None]
    assert "fill" not in str(plan)
    by_partition = await sized_plan(unstaged, {1: range(10)}, sizing=sizing)
    assert (by_partition.files, by_partition.rows, by_partition.sizing) == (1, 10, None)
    assert by_partition.estimate.startswith("from rows per partition")


async def test_of_rows_that_were_not_counted_no_sizes_are_planned(unstaged):
    await appended(unstaged.backend, {1: [1]})
    plan = await sized_plan(unstaged, {}, incoming=["month=1", IncomingRows("month=2", 3)])
    assert (plan.sizing, plan.files, plan.rows) == (None, 2, None)
    assert plan.estimate.endswith("without them no sizes are planned")


@pytest.mark.parametrize("sizing", [None, SIZING])
async def test_a_partition_without_rows_is_none_that_changes(unstaged, sizing):
    await appended(unstaged.backend, {1: [1], 2: [2]})
    words = {"mode": "overwrite", "partition_overwrite": "dynamic", "sizing": sizing}
    plan = await sized_plan(unstaged, {}, incoming=[IncomingRows("month=1", 0), IncomingRows("month=2", 3)], **words)
    assert [each.partition for each in plan.partitions] == ["month=2"]
    assert [file.partition for file in plan.removed] == ["month=2"]


async def test_rows_of_one_partition_that_are_told_twice_add_up(unstaged):
    await appended(unstaged.backend, {1: [1]})
    for sizing in (None, SIZING):
        twice = [IncomingRows("month=1", 3, 36), IncomingRows("month=1", 3, 36)]
        plan = await sized_plan(unstaged, {}, incoming=twice, sizing=sizing)
        assert (plan.rows, [each.rows for each in plan.partitions]) == (6, [6])


async def test_an_overwrite_plans_new_files_only(unstaged):
    await appended(unstaged.backend, {1: [1], 2: [2]})
    plan = await sized_plan(unstaged, {1: range(5)}, mode="overwrite")
    assert plan.sizing is not None
    assert (len(plan.sizing.files), plan.sizing.fills) == (1, ())
    assert [(each.change, len(each.planned or ())) for each in plan.partitions] == [("replaced", 1), ("emptied", 0)]


async def test_an_overwrite_learns_from_the_files_that_it_replaces():
    store = Store(has_staging=False)
    await appended(store.backend, {1: range(1000)})
    months = {1: range(5000)}
    settings = SizingSettings(rewrite_budget=0)
    added = await sized_plan(store, months, sizing=settings)
    replaced = await sized_plan(store, months, mode="overwrite", sizing=settings)
    guessed = await sized_plan(
        Store(has_staging=False), months, schema=FLIGHTS, partition_by=["month"], sizing=settings
    )
    assert replaced.sizing == added.sizing
    assert replaced.sizing != guessed.sizing
    assert [("guessed" in plan.estimate) for plan in (added, replaced, guessed)] == [False, False, True]


async def test_sizes_stand_in_print_in_a_notebook_and_in_json(unstaged):
    await appended(unstaged.backend, {1: [1, 2]})
    (small,) = (await table(unstaged.backend).snapshot()).files
    plan = await sized_plan(unstaged, {1: range(5), 2: range(3)})
    assert plan.sizing is not None
    filled, new = plan.sizing.files
    per_byte = f"{small.bytes / plan.sizing.inserted_bytes:.2f} bytes rewritten for each one inserted"
    for page in (str(plan), plan._repr_html_()):
        assert f"1 small files of {small.bytes} B: {per_byte}" in page
        assert f"added to, add 1 files with 5 rows: {small.bytes} B to" in page
    document = json.loads(plan.to_json())
    assert document["sizing"] == {
        "files": 2,
        "filled_files": 1,
        "bytes": filled.bytes + new.bytes,
        "inserted_bytes": plan.bytes,
        "rewritten_bytes": small.bytes,
        "rewritten_per_byte": plan.sizing.rewritten_per_byte,
    }
    assert [each["planned"] for each in document["partitions"]] == [
        [
            {
                "rows": 5,
                "bytes": filled.bytes,
                "updates": 0,
                "fill": {"path": small.path, "rows": 2, "bytes": small.bytes},
            }
        ],
        [{"rows": 3, "bytes": new.bytes, "updates": 0, "fill": None}],
    ]
    assert "no small file" in str(await sized_plan(unstaged, {2: range(3)}))


async def test_of_many_files_the_first_are_shown_and_the_others_counted(unstaged):
    sizing = SizingSettings(max_file_bytes=100_000, small_file_bytes=80_000, insert_split_rows=1000)
    plan = await sized_plan(unstaged, {1: range(10_000)}, sizing=sizing, schema=FLIGHTS, partition_by=["month"])
    (partition,) = plan.partitions
    assert partition.files is not None
    assert partition.files > 4
    assert str(plan).endswith(f", {partition.files - 4} more")


@pytest.mark.parametrize("name", ["sizing", "markers", "tasks", "service"])
@pytest.mark.parametrize("given", ["default", {"rewrite_budget": 2}, SizingSettings, 8])
async def test_settings_of_another_kind_are_refused_before_anything_is_put(unstaged, name, given):
    with pytest.raises(InvalidRequest, match=rf"^{name}=.* is not a \w+Settings: give {name}=\w+Settings\(\)"):
        async with table(unstaged.backend).write(schema=FLIGHTS, mode="append", **{name: given}):
            pass
    assert not unstaged.objects


@pytest.mark.parametrize("counts", [(-1,), (2.5,), (1, -1), (1, float("nan")), ("7",)])
def test_counts_that_are_none_are_refused(counts):
    with pytest.raises(InvalidRequest, match=r"of partition 'month=1': give a whole number, 0 or more"):
        IncomingRows("month=1", *counts)
    with pytest.raises(InvalidRequest, match=r"of month=1/f: give a whole number, 0 or more"):
        FileUpdates(DataFile("month=1", "f", 1, 1), *counts)
