"""What a write tells of its plan and of what came of it: in its result, its commit, its log and its metrics."""

import json
from dataclasses import replace

import pytest

from tallymark.backends.measured import MeasuredBackend
from tallymark.backends.meter import RequestMeter
from tallymark.engine.jobs.job_sizing import _p95, _size_errors
from tallymark.engine.jobs.result import WriteResult
from tallymark.engine.settings import SizingSettings
from tallymark.engine.timeline.entry import DataFile
from tallymark.engine.timeline.summary import SizingSummary
from tests.engine.jobs.filling import SIZING, appended, filling_job, one_a_partition, profile_of, task_of
from tests.engine.jobs.scene import begin, committed, table
from tests.engine.jobs.test_fills import flights_in, rivals
from tests.engine.jobs.test_result import RESULT

pytestmark = pytest.mark.usefixtures("loop")


def told(result: WriteResult) -> SizingSummary:
    assert result.sizing is not None
    return result.sizing


async def test_a_result_says_what_was_planned_and_what_was_filled(unstaged):
    await appended(unstaged.backend, {1: [1, 2], 2: [3]})
    small = (await table(unstaged.backend).snapshot()).files
    async with filling_job(unstaged.backend, {1: [4], 2: [5], 3: [6]}) as (job, report):
        plan = await job.size(profile_of({1: [4], 2: [5], 3: [6]}))
        result = await job.commit([report])
    found = told(result)
    assert (found.planned_files, found.planned_bytes, found.planned_fills) == (3, plan.bytes, 2)
    assert (found.filled_files, found.lost_fills) == (2, 0)
    assert found.rewritten_bytes == sum(file.bytes for file in small) == plan.rewritten_bytes
    sizes = {file.partition: file.bytes for file in report.files}
    worst = max(abs(sizes[file.partition] - file.bytes) / file.bytes for file in plan.files)
    assert found.size_error_p95 == pytest.approx(worst, abs=1e-4)


async def test_it_stands_in_the_log_and_in_the_replacement_that_readers_of_the_hudi_format_see(staged):
    await appended(staged.backend, {1: [1]})
    result = await appended(staged.backend, {1: [2]})
    (position, entry) = (await table(staged.backend).timeline())[-1]
    assert WriteResult.of(position, entry) == result
    assert entry.operation == "append"
    commit = json.loads(staged.objects[f".hoodie/{result.instant}.replacecommit"])
    projected = json.loads(commit["extraMetadata"]["tallymark.result"])
    assert projected["sizing"] == json.loads(result.to_json())["sizing"]
    assert (projected["sizing"]["filled_files"], projected["rows"]) == (1, 1)


async def test_a_fill_that_was_lost_is_told_and_is_none_that_was_done(unstaged):
    async with rivals(unstaged) as (job, report, _):
        result = await job.commit([report])
    found = told(result)
    assert (found.planned_fills, found.filled_files, found.rewritten_bytes, found.lost_fills) == (1, 0, 0, 1)
    assert found.size_error_p95 is None, "its file is gone, and the one of its new rows was not planned"
    assert "lost fills      1, rewritten" in str(result)


async def test_a_job_knows_the_live_files_without_asking(unstaged):
    await appended(unstaged.backend, {1: [1], 2: [2]})
    storage = MeasuredBackend(unstaged.backend, meter := RequestMeter())
    async with begin(storage, sizing=SIZING) as job:
        asked = meter.statistics()
        assert await job.reference_files(["month=1"]) == (await table(unstaged.backend).snapshot()).files
        assert meter.statistics().classes == asked.classes


@pytest.mark.parametrize("sizing", [None, SizingSettings(small_file_bytes=0), SIZING])
async def test_where_nothing_was_planned_nothing_is_told(unstaged, sizing):
    result = await committed(unstaged.backend, sizing=sizing)
    assert result.sizing is None
    assert json.loads(result.to_json())["sizing"] is None
    assert "planned" not in str(result)


async def test_an_overwrite_fills_nothing_and_tells_of_new_files_only(unstaged):
    await appended(unstaged.backend, {1: [1]})
    result = await appended(unstaged.backend, {1: [2], 2: [3]}, mode="overwrite")
    found = told(result)
    assert (flights_in(unstaged), result.rows) == ({1: [2], 2: [3]}, 2)
    assert (found.planned_files, found.planned_fills, found.filled_files, found.rewritten_bytes) == (2, 0, 0, 0)


async def test_files_that_were_not_planned_do_not_count_for_the_error_of_the_plan(unstaged):
    async with begin(unstaged.backend, sizing=SIZING) as job:
        plan = await job.size(profile_of({1: range(50)}))
        planned = await task_of(job, unstaged.backend, {1: range(50)}, one_a_partition(plan.files))
        other = await task_of(job, unstaged.backend, {2: range(5)}, (), task=1)
        found = told(await job.commit([planned, other]))
    (size,) = (file.bytes for file in planned.files)
    (file,) = plan.files
    assert found.size_error_p95 == pytest.approx(abs(size - file.bytes) / file.bytes, abs=1e-4)
    assert other.planned == ()


def test_the_error_is_one_that_95_of_100_files_do_not_exceed():
    files = [DataFile("p=1", f"{number}.parquet", 1, 100 + number) for number in range(1, 101)]
    expected = {file.path: 100 for file in files}
    assert _p95(_size_errors(files, expected)) == 0.95
    assert _p95(_size_errors(files[:10], {files[9].path: 100})) == 0.1
    assert _p95(_size_errors(files, {})) is None


def test_a_result_prints_its_plan_beside_what_came_of_it():
    sizing = SizingSummary(
        planned_files=4,
        planned_bytes=3 << 20,
        planned_fills=2,
        filled_files=1,
        rewritten_bytes=1 << 20,
        lost_fills=1,
        size_error_p95=0.0324,
    )
    lines = str(replace(RESULT, sizing=sizing)).splitlines()
    assert "planned         4 files, 3.0 MiB; sizes within 3.2 % of it (p95)" in lines
    assert "filled          1 of 2 small files, 1.0 MiB written once more" in lines
    assert "lost fills      1, rewritten: another write had replaced the small files" in lines
    assert "<td>1 of 2 small files, 1.0 MiB written once more</td>" in replace(RESULT, sizing=sizing)._repr_html_()
