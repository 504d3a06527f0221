"""A txn is committed once, however often it is run, and in whatever state an earlier run has left it."""

from dataclasses import replace
from functools import partial

import anyio
import pytest

from tallymark.backends.errors import Unavailable
from tallymark.engine.errors import CommitUnknown, ConflictError, InvalidRequest
from tallymark.engine.jobs.request import TXN_LENGTH
from tallymark.engine.settings import MarkerSettings
from tallymark.engine.tasks.task_writer import write_task
from tallymark.engine.timeline.log import LOG_FOLDER
from tests.engine.jobs.scene import FLIGHTS, Store, begin, committed, die, flights, impatient, table, write_rows
from tests.engine.jobs.yearly import DYNAMIC, STATIC
from tests.support.faulty import FaultyBackend, hanging, lost_request, refused
from tests.support.loops import on_both_loops

TXN = "etl:7"
ENTRY = f"{LOG_FOLDER}/*"


async def run(backend, mode="append", months=None, *, txn=TXN, **named):
    """A whole run of a night job, which does not look whether it is a rerun."""
    return await committed(backend, mode, months, txn=txn, **named)


async def fail(backend) -> None:
    async with begin(backend, txn=TXN) as job:
        await write_rows(job, backend)
        raise RuntimeError


async def rows(store: Store) -> int:
    return (await table(store.backend).snapshot()).rows


LONGEST = f"etl:{'7' * (TXN_LENGTH - 4)}"
TXNS = ["etl:7", "a:b:c", "dag.task:scheduled__2026-11-21T02:00:00+00:00", "é t l:x y", LONGEST]
NO_TXNS = ["", "etl", "etl:", ":7", " etl:7", "etl :7", "etl: 7", "etl:7 ", "etl:7\n", "etl:\x00", 7, ("etl", 7)]


@pytest.mark.parametrize("txn", TXNS)
async def test_a_name_and_a_batch_make_a_txn(staged, txn):
    assert (await run(staged.backend, txn=txn)).txn == txn
    assert [entry["txn"] for entry in staged.commits] == [txn]


@pytest.mark.parametrize("txn", [*NO_TXNS, f"{LONGEST}7"])
async def test_what_is_no_txn_is_refused_and_nothing_is_changed(staged, txn):
    is_long = str(txn).startswith(LONGEST)
    says = "1,001 characters; 1,000 are the most" if is_long else "give a text such as 'job:batch'"
    with pytest.raises(InvalidRequest, match=says):
        await run(staged.backend, txn=txn)
    assert staged.objects == {}


@on_both_loops
async def test_a_rerun_of_a_committed_write_writes_nothing_and_returns_its_result(store):
    first = await run(store.backend)
    left = store.objects
    again = await run(store.backend, months={9: 9})
    assert again == replace(first, is_rerun=True)
    assert not first.is_rerun
    assert store.objects == left
    assert await rows(store) == 5


async def test_a_rerun_costs_a_few_reads_and_no_put_at_all(unstaged):
    await run(unstaged.backend)
    async with begin(unstaged.faulty, txn=TXN) as job:
        assert job.committed is not None
        await job.commit(())
    assert {call.verb for call in unstaged.faulty.calls} == {"get", "list"}
    assert len(unstaged.faulty.calls) <= 8, unstaged.faulty.calls


async def test_who_looks_need_not_run_tasks_and_sees_what_was_committed(staged):
    async with begin(staged.backend, txn=TXN) as job:
        assert job.committed is None
        result = await job.commit([await write_rows(job, staged.backend)])
        assert job.committed == result
    async with begin(staged.backend, txn=TXN) as job:
        assert job.committed == replace(result, is_rerun=True)
        assert (job.instant, job.marker_count) == (result.instant, 0)
        assert await job.commit(()) == await job.commit(()) == job.committed


@on_both_loops
async def test_tasks_of_a_rerun_read_no_rows_and_report_no_files(staged):
    await run(staged.backend)
    left = staged.objects

    rows_of_it = iter(flights().to_batches())
    async with begin(staged.backend, txn=TXN) as job:
        report = await anyio.to_thread.run_sync(
            partial(write_task, job.ticket, rows_of_it, task=3, backend=staged.backend)
        )
        assert (report.task, report.files, report.instant) == (3, (), job.instant)
        assert (await job.commit([report])).is_rerun
    assert next(rows_of_it).num_rows == 5, "nobody has asked for the first batch"
    assert staged.objects == left


async def test_a_rerun_refuses_reports_of_another_job(staged):
    await run(staged.backend)
    async with begin(staged.backend) as other, begin(staged.backend, txn=TXN) as job:
        report = await write_rows(other, staged.backend)
        with pytest.raises(InvalidRequest, match="belongs to instant"):
            await job.commit([report])


async def test_a_rerun_stays_one_after_the_rows_were_overwritten(staged):
    await run(staged.backend)
    await committed(staged.backend, "overwrite", {1: 1})
    assert (await run(staged.backend)).is_rerun
    assert await rows(staged) == 1


@pytest.mark.parametrize("mode", ["append", "overwrite"])
async def test_a_rerun_finishes_what_a_writer_died_over_after_its_commit(store, mode):
    await committed(store.backend)
    async with begin(store.faulty, mode, txn=TXN) as job:
        report = await write_rows(job, store.faulty)
        store.faulty.add(lost_request("put_new", ".hoodie/2*"), lost_request("delete"))
        await job.commit([report])
        die(store.faulty)
    assert job.committed.pending is not None
    store.clock.pass_lease()
    again = await run(store.backend, mode)
    assert (again.is_rerun, again.pending) == (True, None)
    store.check_at_rest()


async def test_a_rerun_lets_readers_see_a_commit_whose_writer_still_lives(store):
    """It projects, and deletes what was replaced; the bookkeeping is its writer's."""
    await committed(store.backend)
    async with begin(store.faulty, "overwrite", txn=TXN) as job:
        report = await write_rows(job, store.faulty)
        store.faulty.add(lost_request("put_new", ".hoodie/2*"))
        await job.commit([report])
        assert (await run(store.backend, "overwrite")).is_rerun
        store.check_projection()
        assert {path for path in store.objects if path.startswith("month=")} >= {file.path for file in report.files}
        assert f".hoodie/.tallymark/open/{job.instant}" in store.objects
        store.faulty.heal()
    store.check_at_rest()


async def test_a_rerun_that_cannot_finish_it_says_so_and_the_next_one_does(unstaged):
    async with begin(unstaged.faulty, txn=TXN) as job:
        await job.commit([await write_rows(job, unstaged.faulty)])
        die(unstaged.faulty)
    unstaged.clock.pass_lease()
    again = await run(FaultyBackend(unstaged.backend, refused("delete", error=Unavailable("no answer"))))
    assert again.is_rerun
    assert "the next write or clean does it" in str(again.pending)
    unstaged.clock.pass_lease()
    assert (await run(unstaged.backend)).pending is None
    unstaged.check_at_rest()


@pytest.mark.parametrize("lands", [True, False])
async def test_a_rerun_cures_a_commit_that_nobody_knows_about(store, lands):
    async with begin(table(store.faulty, commit=impatient(5.0, end_timeout_s=1.0)), txn=TXN) as job:
        report = await write_rows(job, store.faulty)
        store.faulty.add(hanging("put_new", ENTRY, lands=lands))
        with pytest.raises(CommitUnknown):
            await job.commit([report])
        die(store.faulty)
    store.clock.pass_lease()
    again = await run(store.backend)
    assert again.is_rerun == lands
    assert await rows(store) == 5
    store.check_at_rest()


@pytest.mark.parametrize("mode", ["append", "overwrite"])
@on_both_loops
async def test_of_two_jobs_of_one_txn_one_commits_and_the_other_is_told_its_result_and_of_no_conflict(store, mode):
    await committed(store.backend, months={9: 9})
    async with begin(store.backend, mode, txn=TXN) as one, begin(store.backend, mode, txn=TXN) as other:
        reports = [await write_rows(job, store.backend) for job in (one, other)]
        result = await one.commit([reports[0]])
        assert await other.commit([reports[1]]) == replace(result, is_rerun=True)
        assert await other.commit([reports[1]]) == other.committed
        loser = other.instant
    assert (result.is_rerun, store.decisions[loser]["kind"]) == (False, "rollback")
    assert await rows(store) == (14 if mode == "append" else 5)
    store.check_at_rest()


async def test_a_conflict_with_a_stranger_is_still_one(staged):
    await committed(staged.backend)
    async with begin(staged.backend, "overwrite") as one, begin(staged.backend, "overwrite", txn=TXN) as other:
        reports = [await write_rows(job, staged.backend) for job in (one, other)]
        await one.commit([reports[0]])
        with pytest.raises(ConflictError):
            await other.commit([reports[1]])
    assert not (await run(staged.backend, "overwrite")).is_rerun


JANUARY = {"months": {1: 5}, "partition": {"month": 1}}
FEBRUARY = {"months": {2: 5}, "partition": {"month": 2}}


@pytest.mark.parametrize(
    ("first", "second", "said"),
    [
        ({}, STATIC, ['"append"', '"overwrite"']),
        (STATIC, DYNAMIC, ['"static"', '"dynamic"']),
        ({**STATIC, **JANUARY}, {**STATIC, **FEBRUARY}, ["month=1", "month=2"]),
        ({"months": {1: 5}}, JANUARY, ['{"mode": "append"}', "month=1"]),
    ],
    ids=["mode", "partition_overwrite", "partition", "a partition more"],
)
async def test_a_txn_reused_for_another_write_is_refused_and_nothing_is_changed(staged, first, second, said):
    result = await run(staged.backend, **first)
    left = staged.objects
    with pytest.raises(InvalidRequest, match="give this one a txn of its own") as told:
        await run(staged.backend, **second)
    assert all(words in str(told.value) for words in [*said, result.instant, "position 1", TXN])
    assert staged.objects == left


async def test_a_txn_reused_with_other_columns_is_refused_and_nothing_is_changed(staged):
    await run(staged.backend)
    left = staged.objects
    other = FLIGHTS.remove(0)
    with pytest.raises(InvalidRequest, match="column 'flight' of the table"):
        async with table(staged.backend).write(schema=other, mode="append", txn=TXN):
            pass
    assert staged.objects == left


async def test_a_word_that_makes_no_difference_does_not_make_another_write(staged):
    await run(staged.backend, partition_overwrite="static")
    again = await run(staged.backend, partition_overwrite="dynamic", markers=MarkerSettings(), partition_by=())
    assert again.is_rerun


async def test_what_only_guards_a_write_does_not_make_another_write(staged):
    """A rerun reads the table anew before it, and so has another base."""
    await committed(staged.backend)
    words = {"mode": "overwrite", "months": {1: 2}, "partition": {"month": 1}}
    first = await run(staged.backend, base=1, **words)
    again = await run(staged.backend, base=first.position, only_partitions={"month": 1}, **words)
    assert again.is_rerun


async def test_a_twin_that_was_declared_otherwise_is_refused_and_leaves_nothing(unstaged):
    async with begin(unstaged.backend, txn=TXN) as one, begin(unstaged.backend, "overwrite", txn=TXN) as other:
        reports = [await write_rows(job, unstaged.backend) for job in (one, other)]
        await one.commit([reports[0]])
        with pytest.raises(InvalidRequest, match="give this one a txn of its own"):
            await other.commit([reports[1]])
    assert await rows(unstaged) == 5
    unstaged.check_at_rest()
