"""Jobs whose commits a service decides: with others that wait, and without it as soon as it gives no answer."""

from contextlib import AsyncExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path

import anyio
import pytest

import tallymark
from tallymark.engine.background import background_tasks
from tallymark.engine.errors import ConflictError
from tallymark.engine.rpc import commit_broker
from tallymark.engine.serve.job_service import serve_jobs
from tallymark.engine.serve.roots import Roots
from tallymark.engine.serve.settings import JobServiceSettings
from tallymark.engine.settings import SharedServiceSettings
from tallymark.engine.table import Table
from tallymark.engine.timeline.history import History
from tallymark.engine.timeline.lease import Lease
from tests.engine.serve.test_job_service import ROWS, SECRET, left, serving, write_task
from tests.support.loops import on_both_loops


async def append(table: Table, service: SharedServiceSettings, **named) -> tallymark.WriteResult:
    named = {"mode": "append", **named}
    async with table.write(schema=ROWS.schema, service=service, **named) as job:
        return await job.commit([await write_task(job, 0)])


async def history_of(root: Path) -> History:
    return await tallymark.open_table(root / "t")._handle().log.refresh()


@on_both_loops
async def test_drivers_that_commit_at_one_moment_share_an_entry(tmp_path):
    async with serving(tmp_path) as service:
        await append(tallymark.open_table(tmp_path / "t"), service)
        async with AsyncExitStack() as stack:
            jobs = []
            for _ in range(6):
                block = tallymark.open_table(tmp_path / "t").write(schema=ROWS.schema, mode="append", service=service)
                jobs.append(await stack.enter_async_context(block))
            reports = [await write_task(job, 0) for job in jobs]
            async with anyio.create_task_group() as tasks:
                for job, report in zip(jobs, reports, strict=True):
                    tasks.start_soon(job.commit, [report])
    history = await history_of(tmp_path)
    assert history.decided_count == 7
    assert history.head < 7
    assert sum(file.rows for file in history.files_at(history.head)) == 7 * len(ROWS)
    assert left(tmp_path) == []


@on_both_loops
async def test_a_job_reads_what_the_service_has_put_and_its_table_goes_on(tmp_path):
    table = tallymark.open_table(tmp_path / "t")
    async with serving(tmp_path) as service:
        for expected in (1, 2, 3):
            async with table.write(schema=ROWS.schema, mode="append", service=service) as job:
                assert (await job.commit([await write_task(job, 0)])).position == expected
            assert job.result.pending is None
        async with table.write(schema=ROWS.schema, mode="append") as job:
            assert (await job.commit([await write_task(job, 0)])).position == 4
    assert len((await table.snapshot()).files) == 4


@on_both_loops
async def test_the_loser_of_a_conflict_gets_the_error_that_names_the_winner(tmp_path):
    async with serving(tmp_path) as service:
        await append(tallymark.open_table(tmp_path / "t"), service)
        first, second = (tallymark.open_table(tmp_path / "t") for _ in range(2))
        overwrite = partial(Table.write, schema=ROWS.schema, mode="overwrite", service=service)
        async with overwrite(first) as winner, overwrite(second) as loser:
            await winner.commit([await write_task(winner, 0)])
            with pytest.raises(ConflictError, match="the whole table") as caught:
                await loser.commit([await write_task(loser, 0)])
    assert caught.value.winner == winner.instant
    assert (await history_of(tmp_path)).head == 3  # with the rollback
    assert left(tmp_path) == []


@on_both_loops
async def test_the_second_of_two_runs_of_a_txn_gets_the_result_of_the_first(tmp_path):
    async with serving(tmp_path) as service:
        first, second = (tallymark.open_table(tmp_path / "t") for _ in range(2))
        await append(first, service)
        write = partial(Table.write, schema=ROWS.schema, mode="append", txn="load:1", service=service)
        async with write(first) as one, write(second) as other:
            results = [await job.commit([await write_task(job, 0)]) for job in (one, other)]
    assert [result.position for result in results] == [2, 2]
    assert [result.is_rerun for result in results] == [False, True]


@on_both_loops
async def test_without_the_service_a_driver_commits_by_itself_and_asks_again_later(tmp_path, caplog, monkeypatch):
    monkeypatch.setattr(commit_broker, "PAUSE_S", 0.5)
    caplog.set_level("INFO")
    table, life = tallymark.open_table(tmp_path / "t"), anyio.CancelScope()

    async def live(port: int, task_port: int, *, task_status) -> None:
        with life:
            settings = JobServiceSettings(port=port, task_port=task_port)
            await serve_jobs(Roots.of(str(tmp_path)), SECRET, settings, task_status=task_status)

    async with background_tasks() as tasks:
        host, port = await tasks.start(live, 0, 0)
        service = SharedServiceSettings(url=f"http://{host}:{port}", wait_s=0.5)
        async with table.write(schema=ROWS.schema, mode="append", service=service) as job:
            assert job.ticket.service is not None
            task_port = job.ticket.service.port
            reports = [await write_task(job, 0)]
            assert (await job.commit(reports)).position == 1
        async with table.write(schema=ROWS.schema, mode="append", service=service) as job:
            reports = [await write_task(job, 0)]
            life.cancel()
            assert (await job.commit(reports)).position == 2
        assert caplog.text.count("broker.lost") == 1
        life = anyio.CancelScope()
        await tasks.start(live, port, task_port)
        await anyio.sleep(0.6)
        assert (await append(table, service)).position == 3
        assert "broker.reached" in caplog.text
    assert left(tmp_path) == []


@on_both_loops
async def test_a_driver_whose_lease_may_be_over_reads_whether_it_is_committed(tmp_path, monkeypatch):
    monkeypatch.setattr(Lease, "is_fresh", False)
    table = tallymark.open_table(tmp_path / "t")
    async with serving(tmp_path) as service:
        assert (await append(table, service)).position == 1
    assert (await history_of(tmp_path)).head == 1


@on_both_loops
async def test_commits_stay_with_a_driver_that_wants_it(tmp_path, monkeypatch):
    monkeypatch.setattr(commit_broker.CommitBroker, "commit", None)  # a call would fail
    async with serving(tmp_path) as service:
        assert (await append(tallymark.open_table(tmp_path / "t"), replace(service, commits=False))).position == 1
