"""A job's block, its commit, and what both promise."""

from dataclasses import replace

import anyio
import pytest

from tallymark.backends.errors import NotPermitted, Unavailable
from tallymark.engine.errors import CommitUnknown, InvalidRequest, Sealed
from tallymark.engine.settings import MarkerSettings, TaskSettings
from tallymark.engine.tasks.report import TaskReport
from tallymark.engine.timeline.entry import DataFile
from tests.backends.local_peek import LocalPeek
from tests.engine.jobs.scene import (
    begin,
    committed,
    flights,
    impatient,
    mark,
    name_of,
    publish,
    table,
    write_in_thread,
    write_rows,
)
from tests.support.faulty import FaultyBackend, hanging, lost_answer, lost_request, refused, slow
from tests.support.loops import on_both_loops
from tests.table_invariants import (
    no_bookkeeping_is_left,
    one_decision_an_instant,
    only_committed_files_exist,
    table_is_at_rest,
)

kinds = pytest.mark.parametrize("kind", ["batched", "direct"])


@kinds
@on_both_loops
async def test_real_tasks_in_threads_are_committed_to_the_row(store, kind):
    async with begin(store.backend, markers=MarkerSettings(kind=kind)) as job:
        reports = [
            await write_in_thread(job, store.backend, flights({1: 5, 2: 3}), task=0),
            await write_in_thread(job, store.backend, flights({2: 4}), task=1),
        ]
        result = await job.commit(reports)
    store.check_at_rest()
    assert (result.rows, result.files, result.partitions, result.removed_files) == (12, 3, 2, 0)
    assert result.bytes == sum(len(store.objects[path]) for path in store.committed_files)
    assert (result.position, result.instant, result.pending) == (1, job.instant, None)
    assert result.marker_mode == kind
    assert result.markers >= 3
    assert result.puts >= result.marker_objects
    if kind == "direct":
        assert result.marker_objects == result.markers
    snapshot = await table(store.backend).snapshot()
    assert snapshot.rows == 12
    assert snapshot.bytes == result.bytes
    assert {file.path for file in snapshot.files} == store.committed_files


@kinds
@on_both_loops
async def test_on_a_local_disk_too(tmp_path, kind):
    """Two writes are committed, one is not, and nothing but files and directories of the table is left."""
    peek = LocalPeek(tmp_path / "table")
    markers = MarkerSettings(kind=kind)
    for mode, months in (("append", {1: 4, 2: 2}), ("overwrite", {1: 1})):
        async with begin(peek.backend, mode, partition_overwrite="dynamic", markers=markers) as job:
            report = await write_in_thread(job, peek.backend, flights(months))
            await write_in_thread(job, peek.backend, flights(months), attempt=1)
            await job.commit([report])
        table_is_at_rest(peek.objects())
    async with begin(peek.backend, markers=markers) as job:
        await write_in_thread(job, peek.backend, flights())
    only_committed_files_exist(peek.objects())
    no_bookkeeping_is_left(peek.objects())
    assert peek.directories() == []
    assert (await table(peek.backend).snapshot()).rows == 3


async def test_batched_markers_share_objects_and_the_result_counts_them(store):
    async with begin(store.backend, markers=MarkerSettings()) as job:
        report = await write_rows(job, store.backend, dict.fromkeys(range(1, 13), 1))
        assert job.marker_count == 12
        result = await job.commit([report])
    assert (result.markers, result.marker_objects, result.puts, result.fences) == (12, 1, 1, 0)
    assert "<td>12</td>" in result._repr_html_()


async def test_a_table_without_partitions_is_overwritten_whole_whatever_was_asked(store):
    for mode in ("append", "append", "overwrite"):
        async with begin(store.backend, mode, partition_by=(), partition_overwrite="dynamic") as job:
            path = name_of(job)
            await mark(job, store.backend, [path])
            file = publish(job.ticket, store.backend, path, flights())
            result = await job.commit([TaskReport(instant=job.instant, task=0, attempt=0, files=(file,))])
    assert result.removed_files == 2
    assert len(store.data_files) == 1
    store.check_at_rest()


@pytest.mark.parametrize("fault", [lost_request, lost_answer])
@on_both_loops
async def test_the_name_under_which_a_file_was_lost_sight_of_is_closed_by_the_commit(unstaged, fault):
    storage = FaultyBackend(unstaged.backend, fault("publish", nth=1))
    async with begin(storage, tasks=TaskSettings(publish_pause_s=0)) as job:
        result = await job.commit([await write_in_thread(job, storage, flights({1: 5}))])
    unclear, published = storage.paths("publish")
    assert unstaged.committed_files == {published}
    assert (unclear in unstaged.objects) == (fault is lost_request), "an empty file keeps the name that nobody has"
    assert (result.rows, result.files, result.markers) == (5, 1, 2)
    unstaged.check_at_rest()


@kinds
@on_both_loops
async def test_an_error_of_the_users_leaves_bare_and_rolls_back(store, kind):
    class Mishap(Exception):
        pass

    with pytest.raises(Mishap) as caught:  # noqa: PT012
        async with begin(store.backend, markers=MarkerSettings(kind=kind)) as job:
            await write_rows(job, store.backend)
            raise Mishap("mine")
    assert caught.value.args == ("mine",)
    assert caught.value.__context__ is None or not isinstance(caught.value.__context__, BaseExceptionGroup)
    store.check_only_commits_are_left()
    store.check_projection()


async def test_a_users_error_leaves_bare_though_the_rollback_outlasts_many_beats(staged):
    """The rollback's own entry is not to be taken for another writer's."""
    with pytest.raises(ZeroDivisionError):  # noqa: PT012
        async with begin(staged.faulty) as job:
            await write_rows(job, staged.faulty)
            staged.faulty.add(slow("delete", 45))
            raise ZeroDivisionError
    staged.check_only_commits_are_left()


async def test_beats_do_not_come_back_after_a_slow_end(staged):
    async with begin(staged.faulty) as job:
        await anyio.sleep(9)
        staged.faulty.add(slow("delete", 25), slow("put", 3, "*/beat/*"))
        await anyio.sleep(2)  # a beat is on its way
        await job.commit([])
    staged.check_at_rest()


async def test_a_segment_that_is_in_flight_at_the_end_is_not_left(unstaged):
    storage = FaultyBackend(unstaged.backend, slow("put_new", 20, "*/MARKERS*"))

    async def ask(job) -> None:
        with pytest.raises(Sealed):
            await mark(job, storage, [f"month=1/{name_of(job)}"])

    async with anyio.create_task_group() as tasks, begin(storage, markers=MarkerSettings()) as job:
        tasks.start_soon(ask, job)
        await anyio.sleep(1)
    unstaged.check_only_commits_are_left()


@pytest.mark.parametrize(
    ("fault", "said", "seconds"),
    [(lost_request("get", "*/log/*"), "the request was lost", 0), (hanging("delete"), "no answer for 60 s", 60)],
    ids=["storage fails", "storage does not answer"],
)
async def test_an_end_that_storage_keeps_from_its_work_is_bounded_and_leaves_it_to_the_next_writer(
    staged, caplog, fault, said, seconds
):
    async with begin(table(staged.faulty, commit=impatient(5, end_timeout_s=60))) as job:
        await write_rows(job, staged.faulty)
        staged.faulty.add(fault)
        begun = anyio.current_time()
    assert anyio.current_time() - begun == seconds
    assert "instant.unfinished" in caplog.text
    assert said in caplog.text
    assert staged.data_files != set()
    staged.clock.pass_lease()
    await committed(staged.backend)
    staged.check_at_rest()


async def test_the_log_tells_what_markers_cost_the_tasks_and_how_long_commit_and_deletion_took(unstaged, caplog):
    caplog.set_level("INFO", logger="tallymark.engine")
    storage = FaultyBackend(unstaged.backend, slow("put_new", 2, "*/log/*"), slow("delete", 3, "*/.temp/*"))
    async with begin(storage) as job:
        reports = [replace(await write_rows(job, storage, task=task), marker_wait_s=0.25) for task in (0, 1)]
        await job.commit(reports)
    told = {record.event: record.fields for record in caplog.records}
    assert (told["instant.committed"]["marker_wait_s"], told["instant.committed"]["seconds"]) == (0.5, 2)
    assert (told["markers.deleted"]["objects"], told["markers.deleted"]["seconds"]) == (5, 3)  # four, and the kind


async def test_a_job_is_committed_once(unstaged):
    async with begin(unstaged.backend) as job:
        report = await write_rows(job, unstaged.backend)
        await job.commit([report])
        with pytest.raises(InvalidRequest, match="has been committed already; begin a new one"):
            await job.commit([report])
    unstaged.check_at_rest()
    assert len(unstaged.log_entries) == 1


OTHERS = "20200101000000000"
STRAY = DataFile("month=1", f"stray_{OTHERS}.parquet", 1, 1)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"instant": OTHERS, "task": 1}, f"belongs to instant {OTHERS}, this job is "),
        ({"attempt": 4}, r"two reports of task 0 \(attempts 3 and 4\)"),
        ({"task": 1, "files": (STRAY,)}, f"{STRAY.name} was never marked"),
    ],
    ids=["of another job", "two of one task", "of a file that was never marked"],
)
async def test_a_bad_report_is_refused_and_the_good_one_alone_still_goes(store, change, says):
    async with begin(store.backend) as job:
        report, lost = [await write_rows(job, store.backend, attempt=attempt) for attempt in (3, 4)]
        with pytest.raises(InvalidRequest, match=says):
            await job.commit([report, replace(lost, **change)])
        await job.commit([report, report])
    assert store.committed_files == {file.path for file in report.files}
    store.check_at_rest()


@pytest.mark.parametrize(
    "fault", [lost_request("put_new", "*/log/*"), lost_answer("delete", nth=1)], ids=["log", "fence"]
)
async def test_a_commit_that_failed_may_be_called_again_with_the_same_reports_only(unstaged, fault):
    """The files of those that it did not name the first time are deleted."""
    async with begin(table(unstaged.faulty, commit=impatient(5))) as job:
        reports = [await write_rows(job, unstaged.faulty, task=task) for task in (0, 1)]
        unstaged.faulty.add(fault)
        with pytest.raises((Unavailable, CommitUnknown)):
            await job.commit(reports[:1])
        unstaged.faulty.heal()
        with pytest.raises(InvalidRequest, match="call commit with the same reports again"):
            await job.commit(reports)
        await job.commit(reports[:1])
    assert unstaged.committed_files == {file.path for file in reports[0].files}
    unstaged.check_at_rest()


@pytest.mark.parametrize("is_finished", [False, True], ids=["by its job", "by somebody else"])
async def test_an_unknown_commit_stays_unknown_while_storage_is_silent_and_then_is_found(store, is_finished):
    """The simulation was told Unavailable, which is said of what is not in the log; and it was there. Whoever finishes
    it drops its markers: that is no reason to say that the files were never marked."""
    async with begin(table(store.faulty, commit=impatient(5))) as job:
        report = await write_rows(job, store.faulty)
        store.faulty.add(lost_answer("put_new", "*/log/*"))
        store.faulty.add(*(lost_request("get", "*/log/*", nth=count) for count in range(2, 100)))
        with pytest.raises(CommitUnknown) as caught:
            await job.commit([report])
        assert caught.value.instant == job.instant
        store.faulty.add(lost_request("put"), lost_request("list"))
        with pytest.raises(CommitUnknown):
            await job.commit([report])
        store.faulty.heal()
        if is_finished:
            await table(store.backend).rollback(job.instant)
        assert (await job.commit([report])).position == 1
    store.check_at_rest()
    one_decision_an_instant(store.objects)


@pytest.mark.parametrize(
    ("lands", "told"),
    [
        (True, "has been committed already; begin a new one"),
        (False, "was rolled back when its block ended; begin a new"),
    ],
)
async def test_an_unknown_commit_is_committed_when_the_block_ends_if_its_entry_has_landed(store, lands, told):
    with pytest.raises(CommitUnknown):  # noqa: PT012
        async with begin(table(store.faulty, commit=impatient(5))) as job:
            report = await write_rows(job, store.faulty)
            store.faulty.add(hanging("put_new", "*/log/*", lands=lands))
            try:
                await job.commit([report])
            finally:
                store.faulty.heal()
    assert store.committed_files == ({file.path for file in report.files} if lands else set())
    store.check_only_commits_are_left()
    with pytest.raises(InvalidRequest, match=told):
        await job.commit([report])


async def test_a_job_whose_end_storage_did_not_tell_is_not_said_to_be_rolled_back(store):
    """Else its caller would write the rows once more."""
    with pytest.raises(CommitUnknown):  # noqa: PT012
        async with begin(table(store.faulty, commit=impatient(5, end_timeout_s=5))) as job:
            report = await write_rows(job, store.faulty)
            store.faulty.add(hanging("put_new", "*/log/*", lands=True))
            try:
                await job.commit([report])
            finally:
                store.faulty.add(hanging("get"), hanging("list"))
    with pytest.raises(
        CommitUnknown, match="is over, and storage gave no clear outcome; see tallymark timeline 'memory:' once"
    ):
        await job.commit([report])


async def test_a_commit_stands_though_its_projection_has_to_wait(staged, caplog):
    async with begin(staged.faulty) as job:
        report = await write_rows(job, staged.faulty)
        staged.faulty.add(refused("put_new", "*.commit", error=NotPermitted("read only")))
        await job.commit([report])
    result = job.committed
    assert result.pending is not None
    assert "read only" in result.pending
    assert result.pending in result._repr_html_().replace("&#x27;", "'")
    assert "projection.postponed" in caplog.text
    assert staged.committed_files == {file.path for file in report.files}
    await table(staged.backend).clean()
    staged.check_projection()
    staged.clock.pass_lease()
    await table(staged.backend).clean()
    staged.check_at_rest()
