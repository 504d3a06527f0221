"""Batched jobs whose tasks cannot reach the service, and put their markers themselves (docs/decisions/0009)."""

import copy
import os
import pickle  # noqa: TID251, what Spark and process pools do
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import anyio
import pytest

from tallymark.backends import Backend
from tallymark.backends.errors import NotFound
from tallymark.engine.errors import Sealed
from tallymark.engine.instants.marked import Marked, directly_marked
from tallymark.engine.jobs.write_job import WriteJob
from tallymark.engine.markers.direct_flag import DirectFlag, flag_path
from tallymark.engine.markers.segment import marker_folder
from tallymark.engine.rpc.handshake import ServiceAddress
from tallymark.engine.settings import MarkerSettings, SizingSettings, TaskSettings
from tallymark.engine.tasks.event_loops import TaskLoop
from tallymark.engine.tasks.marker_sources import task_markers
from tallymark.engine.tasks.report import TaskReport
from tallymark.engine.tasks.task_writer import write_task
from tallymark.engine.tasks.ticket import WriteTicket
from tallymark.engine.timeline.seal import seal_path
from tests.engine.jobs.scene import (
    Store,
    begin,
    committed,
    die,
    flights,
    mark,
    mark_directly,
    name_of,
    publish,
    table,
    write_in_thread,
    write_rows,
)
from tests.support.faulty import FaultyBackend, slow
from tests.support.loops import on_both_loops

ends = pytest.mark.parametrize("commits", [True, False], ids=["commit", "rollback"])
BATCHED = MarkerSettings()
HASTY = TaskSettings(service_wait_s=0.1)
"""Of those whom nobody would answer, however long they waited; the others have the time that tasks have."""


def cut_off(job: WriteJob) -> WriteTicket:
    """The job's ticket, for tasks to whom nobody listens at the service's address."""
    return replace(job.ticket, service=ServiceAddress("127.0.0.1", 1, os.urandom(32)), settings=HASTY)


async def write_cut_off(job: WriteJob, backend: Backend, months: dict[int, int], **named) -> TaskReport:
    """The real task in a worker thread, which cannot reach the service."""
    batches = flights(months).to_batches()
    return await anyio.to_thread.run_sync(partial(write_task, cut_off(job), batches, backend=backend, **named))


@on_both_loops
async def test_a_job_whose_service_nobody_reaches_commits_exactly_what_its_tasks_report(store, caplog):
    async with begin(store.backend, markers=BATCHED) as job:
        reports = [await write_cut_off(job, store.backend, {1: 5, 2: 3}, task=0)]
        await write_cut_off(job, store.backend, {2: 4, 3: 1}, task=1)  # an attempt that nobody reports
        reports.append(await write_cut_off(job, store.backend, {2: 4}, task=1, attempt=1))
        result = await job.commit(reports)
    assert (result.rows, result.files, result.fences) == (12, 3, 0)
    assert store.committed_files == {file.path for report in reports for file in report.files}
    assert (result.marker_mode, result.markers, result.direct_markers) == ("direct", 5, 5)
    assert (result.marker_objects, result.puts) == (5, 5)
    assert f"markers.mixed instant={job.instant} direct=5 markers=5 tasks=2" in caplog.text
    store.check_at_rest()


@on_both_loops
async def test_some_tasks_may_reach_it_and_others_not(store, caplog):
    async with begin(store.backend, markers=BATCHED) as job:
        reports = [
            await write_in_thread(job, store.backend, flights({1: 5, 2: 3}), task=0),
            await write_cut_off(job, store.backend, {1: 4}, task=1),
        ]
        result = await job.commit(reports)
    assert [report.direct_markers for report in reports] == [0, 1]
    assert (result.rows, result.files) == (12, 3)
    assert (result.marker_mode, result.markers, result.direct_markers) == ("mixed", 3, 1)
    assert "<td>mixed</td>" in result._repr_html_()
    assert f"markers.mixed instant={job.instant} direct=1 markers=3 tasks=1" in caplog.text
    store.check_at_rest()


async def test_while_all_reach_it_the_result_and_the_log_say_nothing_else(store, caplog):
    result = await committed(store.backend, markers=BATCHED)
    assert (result.marker_mode, result.direct_markers) == ("batched", 0)
    assert "markers." not in caplog.text


async def test_a_marker_that_both_have_made_is_one_marker(store):
    """The service made it, and its ack came too late or not at all."""
    async with begin(store.backend, markers=BATCHED) as job:
        path, other = f"month=1/{name_of(job)}", f"month=2/{name_of(job, attempt=1)}"
        await mark(job, store.backend, [path, other])
        await mark_directly(job, store.backend, [path])
        file = publish(job.ticket, store.backend, path, flights({1: 2}))
        publish(job.ticket, store.backend, other, flights({2: 2}))
        result = await job.commit([TaskReport(instant=job.instant, task=0, attempt=0, files=(file,))])
    assert (result.markers, result.direct_markers, result.marker_objects) == (2, 1, 2)
    assert store.committed_files == {path}
    store.check_at_rest()


@pytest.mark.parametrize("markers", [BATCHED, MarkerSettings(kind="direct")], ids=["batched", "direct"])
@on_both_loops
async def test_a_name_that_was_asked_ahead_and_given_back_needs_no_fence(store, markers):
    """Nor does one that was marked directly."""
    sizing = SizingSettings(max_file_bytes=1, small_file_bytes=0)
    async with begin(store.backend, markers=markers, sizing=sizing) as job:
        report = await write_in_thread(job, store.backend, flights({1: 3}))
        unused = f"month=1/{name_of(job)}"
        await mark_directly(job, store.backend, [unused])
        result = await job.commit([replace(report, unused=(*report.unused, unused))])
    assert (result.fences, store.fences) == (0, set())
    store.check_at_rest()


async def test_to_expect_direct_markers_costs_a_job_one_request(store):
    async with begin(store.faulty, markers=BATCHED) as job:
        report = await write_rows(job, store.faulty, dict.fromkeys(range(1, 13), 1))
        store.faulty.calls.clear()
        await job.commit([report])
    assert [path for path in store.faulty.paths("put") if "/seal/" in path] == store.faulty.paths("list") == []
    folder = marker_folder(job.instant)
    found = [(call.verb, path) for call in store.faulty.calls for path in call.paths if path.startswith(folder)]
    request = "get" if store.backend.has_staging else "put_new"
    assert [call for call in found if call[0] in ("get", "put", "put_new")] == [(request, flag_path(job.instant))]
    store.check_at_rest()


async def test_where_no_other_process_has_the_ticket_no_request_is_needed(store):
    async with begin(store.faulty, markers=BATCHED, is_private=True) as job:
        report = await write_rows(job, store.faulty)
        store.faulty.calls.clear()
        await job.commit([report])
        with pytest.raises(Sealed, match="takes no tasks of other processes"):
            job.ticket.encode()
        with pytest.raises(Sealed, match="takes no tasks of other processes"):
            replace(job.ticket, settings=HASTY).encode()
    assert [path for call in store.faulty.calls for path in call.paths if path == flag_path(job.instant)] == [
        flag_path(job.instant)  # its deletion, with the others
    ]
    store.check_at_rest()


@pytest.mark.parametrize("leaves", [copy.deepcopy, pickle.dumps, WriteTicket.encode, lambda _: fork()])
async def test_a_ticket_that_may_have_left_the_process_costs_the_request(unstaged, leaves):
    async with begin(unstaged.faulty, markers=BATCHED, is_private=True) as job:
        report = await write_rows(job, unstaged.faulty)
        leaves(job.ticket)
        await job.commit([report])
        job.ticket.encode()
    assert flag_path(job.instant) in unstaged.faulty.paths("put_new")
    unstaged.check_at_rest()


async def test_a_child_that_was_forked_too_late_is_refused(unstaged):
    async with begin(unstaged.backend, markers=BATCHED, is_private=True) as job:
        await job.commit([await write_rows(job, unstaged.backend)])

        def refuses() -> None:
            with pytest.raises(Sealed, match="takes no tasks any more"):
                task_markers(job.ticket, unstaged.backend, TaskLoop(patience_s=1.0))

        assert fork(refuses) == 0


def fork(act: Callable[[], object] = lambda: None) -> int:
    """Run the action in a forked child; return 0 if it raised nothing."""
    child = os.fork()
    if not child:
        try:
            act()
        except BaseException:
            os._exit(1)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@on_both_loops
async def test_the_flag_comes_before_the_first_direct_marker_and_the_look_for_the_seal_after_it(store):
    async with begin(store.backend, markers=BATCHED) as job:
        report = await write_cut_off(job, store.faulty, {1: 1}, task=0)
        await job.commit([report])
    marker = f"{marker_folder(job.instant)}/{report.files[0].path}.marker.CREATE"
    calls = [(call.verb, path) for call in store.faulty.calls for path in call.paths]
    wanted = [("put_new", flag_path(job.instant)), ("put_new", marker), ("get", seal_path(job.instant))]
    assert [call for call in calls if call in wanted] == wanted
    store.check_at_rest()


async def test_where_a_task_has_raised_the_flag_its_markers_are_listed_and_dropped(store):
    """Its process has died before it could tell anybody of them."""
    async with begin(store.faulty, markers=BATCHED) as job:
        report = await write_rows(job, store.faulty)
        loser = f"month=1/{name_of(job, attempt=1)}"
        await mark_directly(job, store.backend, [loser])
        store.faulty.calls.clear()
        result = await job.commit([report])
    assert (result.direct_markers, result.fences) == (1, 0 if store.backend.has_staging else 1)
    assert store.faulty.paths("list").count(marker_folder(job.instant)) == 1 + 1, "before the entry, and to delete them"
    store.check_at_rest()


async def test_a_flag_that_lands_when_its_job_is_over_goes_with_the_next_clean(unstaged):
    """Its task has died right after."""
    async with begin(unstaged.backend, markers=BATCHED) as job:
        await job.commit([await write_rows(job, unstaged.backend)])
    await DirectFlag().put(unstaged.backend, job.instant)
    await table(unstaged.backend).clean()
    unstaged.check_at_rest()


@ends
@pytest.mark.parametrize("has_published", [True, False], ids=["published", "late"])
async def test_a_loser_that_fell_back_leaves_no_file_and_can_publish_nothing_any_more(store, commits, has_published):
    async with begin(store.backend, markers=BATCHED) as job:
        report = await write_rows(job, store.backend)
        loser = f"month=1/{name_of(job, attempt=1)}"
        await mark_directly(job, store.backend, [loser])
        if has_published:
            publish(job.ticket, store.backend, loser, flights({1: 2}))
        if commits:
            await job.commit([report])
    if has_published:
        assert loser not in store.data_files
    else:
        with pytest.raises(NotFound if store.backend.has_staging else FileExistsError):
            publish(job.ticket, store.backend, loser, flights({1: 2}))
    store.check_only_commits_are_left()


@ends
@on_both_loops
async def test_a_task_that_falls_back_after_the_end_is_refused_and_leaves_nothing(store, commits):
    async with begin(store.backend, markers=BATCHED) as job:
        report = await write_rows(job, store.backend)
        if commits:
            await job.commit([report])
            with pytest.raises(Sealed, match=r"is being committed|its commit stands"):
                await write_cut_off(job, store.backend, {1: 2}, task=1)
    with pytest.raises(Sealed, match="stands at position 1"):
        await write_cut_off(job, store.backend, {1: 2}, task=1)
    store.check_only_commits_are_left()


@pytest.mark.no_cover
@ends
async def test_a_fallback_that_lands_while_the_job_seals_is_either_seen_or_refused(store, commits):
    """Whatever the delays of its put and of its look for the seal, no row outlives the end of the job."""
    outcomes = set()
    for put_s in range(6):
        for before_s, after_s in [(0, 0), (1, 0), (4, 0), (0, 2), (0, 5), (2, 3)]:
            store = Store(has_staging=store.backend.has_staging)
            look = slow("get", before_s, "*/seal/*", after_s=after_s)
            task = FaultyBackend(store.backend, slow("put_new", put_s, "*.marker.*"), look)
            job_side = FaultyBackend(store.backend, slow("put", 2, "*/seal/*"), slow("list", 2, ".hoodie/.temp/*"))
            job_side.add(slow("put_new", 2, "*/log/*"))

            async def loser(job, storage) -> None:
                path = f"month=1/{name_of(job, attempt=7)}"
                try:
                    await mark_directly(job, storage, [path])
                    publish(job.ticket, storage, path, flights({1: 1}))
                    outcomes.add("published")
                except Sealed:
                    outcomes.add("refused")
                except (FileExistsError, NotFound):
                    outcomes.add("excluded")

            async with anyio.create_task_group() as tasks, begin(job_side, markers=BATCHED) as job:
                report = await write_rows(job, store.backend)  # from here on the service knows what it has acked
                tasks.start_soon(loser, job, task)
                await anyio.sleep(1)
                if commits:
                    await job.commit([report])
            store.check_only_commits_are_left()
    # A rollback has its entry before all else: whoever comes too late to publish is refused by it.
    assert outcomes == {"published", "refused"} | ({"excluded"} if commits else set()), "else there was no race"


@on_both_loops
async def test_whoever_rolls_back_a_dead_drivers_job_finds_what_its_tasks_have_marked(store):
    async with begin(store.faulty, markers=BATCHED) as job:
        await write_rows(job, store.faulty, task=0)
        die(store.faulty)
    await write_cut_off(job, store.backend, {3: 2}, task=1)  # its task lives on, and has been told nothing
    late = f"month=4/{name_of(job, task=2)}"
    await mark_directly(job, store.backend, [late])
    assert len(store.data_files) == 3
    store.clock.pass_lease()
    await committed(store.backend)
    assert store.decisions[job.instant]["kind"] == "rollback"
    assert (late in store.fences) is not store.backend.has_staging
    with pytest.raises(Sealed):
        await write_cut_off(job, store.backend, {3: 2}, task=1, attempt=1)
    store.check_at_rest()


@on_both_loops
async def test_all_direct_markers_are_found_among_all_else_that_lies_there(staged):
    folder = marker_folder("20261121020304005")
    markers = ("/a=1/f.parquet.marker.CREATE", "/g.parquet.marker.MERGE")
    others = ("/MARKERS.type", "/MARKERS1073741824", "/SERVER1024", "/h.parquet.marker.SOMETHING")
    for name in (*markers, *others, "6/i.parquet.marker.CREATE"):
        await staged.backend.put(f"{folder}{name}", b"")
    assert await directly_marked(staged.backend, "20261121020304005") == {"a=1/f.parquet", "g.parquet"}


def test_the_mode_is_the_one_in_effect():
    nothing, a, b = frozenset(), frozenset({"a"}), frozenset({"b"})
    assert Marked(batched=nothing, direct=nothing).mode("batched") == "batched"
    assert Marked(batched=nothing, direct=nothing).mode("direct") == "direct"
    assert Marked(batched=a, direct=nothing).mode("batched") == "batched"
    assert Marked(batched=nothing, direct=b).mode("direct") == "direct"
    assert Marked(batched=nothing, direct=b).mode("batched") == "direct"
    assert Marked(batched=a, direct=b).mode("batched") == "mixed"
