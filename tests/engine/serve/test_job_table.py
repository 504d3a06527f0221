"""Jobs whose markers are taken outside of their driver: what was acked is found, and nothing is acked too late."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest

from tallymark.backends import Backend
from tallymark.backends.meter import ClassStatistics, RequestStatistics
from tallymark.engine.errors import InvalidRequest, RolledBack, Sealed, ServiceUnavailable, TallymarkError
from tallymark.engine.instants.marked import marked_in_storage
from tallymark.engine.jobs import open_job
from tallymark.engine.jobs.write_job import WriteJob
from tallymark.engine.markers.engine import MarkerEngine
from tallymark.engine.rpc.handshake import ServiceAddress, job_name
from tallymark.engine.rpc.messages import CreateMarkers
from tallymark.engine.serve.job_table import JobTable
from tallymark.engine.serve.job_tables import JobTables
from tallymark.engine.serve.memory import DEFAULT_BYTES, Memory
from tallymark.engine.serve.roots import Root, Roots
from tallymark.engine.settings import MarkerSettings, SharedServiceSettings, ViewSettings
from tallymark.engine.tasks.report import TaskReport
from tallymark.engine.views.block import unpack_rows
from tests.engine.jobs.scene import Store, begin, committed, flights, name_of, publish, table
from tests.support.faulty import FaultyBackend, slow
from tests.support.loops import on_both_loops, on_virtual_time

SHARED = SharedServiceSettings(url="http://127.0.0.1:26755")
MARKERS = MarkerSettings(interval_s=0.001, segment_count_max=3, merge_freed_min=1)


@pytest.fixture(autouse=True)
def key_of_a_job(monkeypatch: pytest.MonkeyPatch) -> None:
    """A driver gets its key without a service: the tests ask the tables themselves."""

    async def address(settings: SharedServiceSettings, url: str, instant: str) -> ServiceAddress:
        return ServiceAddress("127.0.0.1", 1, bytes(32), job_name(instant, url))

    monkeypatch.setattr(open_job, "shared_address", address)


@pytest.fixture(params=[True, False], ids=["staging", "no_staging"])
def store(request: pytest.FixtureRequest) -> Store:
    return Store(has_staging=request.param)


@asynccontextmanager
async def serving(backend: Backend) -> AsyncIterator[JobTable]:
    async with anyio.create_task_group() as tasks:
        yield JobTable(backend, MarkerEngine(backend, MARKERS, tasks), ViewSettings(), Memory(DEFAULT_BYTES))
        tasks.cancel_scope.cancel()


def shared_job(backend: Backend, mode: str = "append", **named: Any) -> Any:
    return begin(backend, mode, markers=MarkerSettings(), service=SHARED, **named)


async def mark(service: JobTable, instant: str, *paths: str) -> None:
    """Raises what the request is answered with."""
    found: list[object] = []

    async def settle(outcomes: Sequence[tuple[CreateMarkers, object]]) -> None:
        found.extend(outcome for _, outcome in outcomes)

    await service.create_markers(instant, [CreateMarkers(1, paths, "CREATE")], settle)
    [outcome] = found
    if isinstance(outcome, TallymarkError):
        raise outcome


def path_of(job: WriteJob, month: int, task: int = 0) -> str:
    return f"month={month}/{name_of(job, task=task)}"


def report(job: WriteJob, backend: Backend, *paths: str, task: int = 0) -> TaskReport:
    files = [publish(job.ticket, backend, path, flights({1: 1})) for path in paths]
    return TaskReport(instant=job.instant, task=task, attempt=0, files=tuple(files))


def markers_left(store: Store) -> list[str]:
    return [path for path in store.stored if path.startswith(".hoodie/.temp/")]


@on_both_loops
async def test_a_commit_finds_what_two_services_and_their_successors_have_acked(store):
    backend = store.backend
    async with serving(backend) as one, serving(backend) as other, shared_job(backend) as job:
        paths = [path_of(job, 1, task) for task in range(12)]
        lost = [path_of(job, 2, task) for task in range(3)]
        for number, path in enumerate([*paths, *lost]):
            await mark((one, other)[number % 2], job.instant, path)
            if number == 7:
                async with serving(backend) as successor:
                    await mark(successor, job.instant, path, path_of(job, 3))
        for path in lost:
            publish(job.ticket, backend, path, flights({2: 1}))
        result = await job.commit([report(job, backend, *paths)])
    assert (result.markers, result.direct_markers, result.marker_mode) == (16, 0, "batched")
    assert store.committed_files == {*paths}
    store.check_only_commits_are_left()
    assert markers_left(store) == []


@pytest.mark.parametrize("ends_by", ["commit", "rollback"])
@on_both_loops
async def test_nothing_is_acked_once_the_markers_are_read_and_nothing_is_left_of_a_late_request(store, ends_by):
    backend = store.backend
    async with serving(backend) as one, serving(backend) as other:
        async with shared_job(backend) as job:
            marked = path_of(job, 1)
            await mark(one, job.instant, marked)
            reported = report(job, backend, marked)
            if ends_by == "commit":
                await job._prepared([reported], reported.files)
                for service in (one, other):
                    with pytest.raises(Sealed, match="takes no more markers"):
                        await mark(service, job.instant, path_of(job, 2))
                await job.commit([reported])
        for service in (one, other):
            with pytest.raises(Sealed, match="takes no more markers"):
                await mark(service, job.instant, path_of(job, 3))
        assert markers_left(store) == []
        store.check_only_commits_are_left()


@on_virtual_time
async def test_a_claim_that_lands_after_the_end_acks_nothing_and_goes():
    store = Store(has_staging=True)
    slowly = FaultyBackend(store.backend, slow("put_new", 5.0, "*/SERVER*"))
    async with serving(slowly) as service, anyio.create_task_group() as tasks:
        async with shared_job(store.backend) as job:

            async def late() -> None:
                with pytest.raises(Sealed):
                    await mark(service, job.instant, path_of(job, 1))

            tasks.start_soon(late)
            await anyio.sleep(1.0)
            await job.commit([])
        await anyio.sleep(20.0)
        assert markers_left(store) == []


@on_virtual_time
async def test_an_instant_that_another_writer_has_rolled_back_gets_no_markers(store):
    backend = store.backend
    async with serving(backend) as service:

        async def write() -> None:
            async with shared_job(backend) as job:
                marked = path_of(job, 1)
                await mark(service, job.instant, marked)
                publish(job.ticket, backend, marked, flights({1: 1}))
                await table(backend).rollback(job.instant)
                with pytest.raises(Sealed):
                    await mark(service, job.instant, path_of(job, 2))
                await job.commit([])

        with pytest.raises(RolledBack):
            await write()
        assert store.committed_files == set()
        assert markers_left(store) == []


@on_both_loops
async def test_only_files_of_the_instant_are_marked_and_only_of_one_that_was_reserved(store):
    backend = store.backend
    await committed(backend)
    async with serving(backend) as service, shared_job(backend) as job:
        with pytest.raises(InvalidRequest, match="not a data file of instant"):
            await mark(service, job.instant, "month=1/of-another-job.parquet")
        for instant in ("20200101000000000", store.commits[0]["instant"]):
            with pytest.raises(Sealed):
                await mark(service, instant, path_of(job, 1))
        assert not [path for path in markers_left(store) if job.instant not in path]


@on_both_loops
async def test_lookups_are_answered_as_of_the_position_of_each_job(store):
    backend = store.backend
    await committed(backend, months={1: 3})
    async with serving(backend) as service, shared_job(backend) as early:
        await committed(backend, months={1: 2})
        async with shared_job(backend) as late:
            found = {}
            for job in (early, late, early, late):
                ticket = job.ticket
                block_of = await service.look_up(job.instant, ticket.base, ticket.base_hash)
                rows = unpack_rows(await block_of("month=1"), "month=1")
                found[job.instant] = sum(row.file.rows for row in rows if row.added_at <= ticket.base)
                assert service.cached_blocks(job.instant, ticket.base, ticket.base_hash, ["month=1"]) is not None
            assert found == {early.instant: 3, late.instant: 5}
            with pytest.raises(InvalidRequest, match="one of another log"):
                await service.look_up(early.instant, early.ticket.base, "another")


class OneTable(Roots):
    """All jobs are of one table."""

    def __init__(self, backend: Backend) -> None:
        super().__init__([Root("/one")])
        self._backend = backend

    def open(self, place: str, *, scratch: str | None = None) -> Backend:
        return self._backend


@pytest.mark.parametrize("kind", ["memory", "spillable"])
@on_both_loops
async def test_blocks_are_right_though_the_table_was_released_since_the_lookup(store, tmp_path, kind):
    """Memory may be needed between the lookup and its blocks, which may be many."""
    await committed(store.backend, months={1: 2, 2: 1})
    views = ViewSettings(store=kind, memory_bytes=1, folder=str(tmp_path))
    async with anyio.create_task_group() as tasks, shared_job(store.backend) as job:
        tables = JobTables(OneTable(store.backend), tasks, MARKERS, views, Memory(DEFAULT_BYTES))
        named = job_name(job.instant, "/one")
        block_of = await tables.look_up(named, job.ticket.base, job.ticket.base_hash)
        first = await block_of("month=1")
        for _ in range(2):
            tables.close()
            assert await block_of("month=1") == first
        tables.close()
        assert [row.file.rows for row in unpack_rows(await block_of("month=2"), "month=2")] == [1]
        tables.close()
        tasks.cancel_scope.cancel()
    assert list(tmp_path.iterdir()) == []


@on_virtual_time
async def test_an_ack_costs_a_put_and_a_look_at_the_claim():
    store = Store(has_staging=True)
    storage = FaultyBackend(store.backend)
    async with serving(storage) as service, shared_job(store.backend) as job:
        await mark(service, job.instant, path_of(job, 1, 0))
        before = len(storage.calls)
        await mark(service, job.instant, path_of(job, 1, 1))
        calls = [(call.verb, call.paths[0].rpartition("/")[2]) for call in storage.calls[before:]]
        assert calls == [("put_new", "MARKERS1073741825"), ("get", "SERVER1024")]


class Repeating(FaultyBackend):
    """A store whose client repeats the first puts of a claim."""

    def __init__(self, inner: Backend, *, repeated: int) -> None:
        super().__init__(inner)
        self.repeated = repeated
        self.retries = 0

    def statistics(self) -> RequestStatistics:
        puts = ClassStatistics("put", {"unknown": self.retries}, 0, 0, 0.0, 0.0, 0.0)
        return RequestStatistics((puts,), self.retries)

    async def put_new(self, path: str, data: bytes) -> None:
        await super().put_new(path, data)
        if "/SERVER" in path and self.repeated:
            self.repeated -= 1
            self.retries += 1


@on_both_loops
async def test_a_claim_whose_put_was_sent_twice_is_not_relied_on(store):
    """A copy of it that lands when the folder is gone would be a claim again."""
    repeating = Repeating(store.backend, repeated=2)
    async with serving(repeating) as service:
        async with shared_job(store.backend) as job:
            await mark(service, job.instant, path_of(job, 1))
            claims = {path: data for path, data in store.stored.items() if "/SERVER" in path}
            assert [path.rpartition("/")[2] for path in sorted(claims)] == ["SERVER1024", "SERVER1025", "SERVER1026"]
            await job.commit([])
        for path in sorted(claims)[:2]:
            await store.backend.put_new(path, claims[path])
        with pytest.raises(Sealed):
            await mark(service, job.instant, path_of(job, 2))
    assert markers_left(store) == []


@on_both_loops
async def test_tasks_put_their_own_markers_where_no_claim_can_be_relied_on(store):
    async with serving(Repeating(store.backend, repeated=100)) as service, shared_job(store.backend) as job:
        with pytest.raises(ServiceUnavailable, match="put markers directly"):
            await mark(service, job.instant, path_of(job, 1))
        await job.commit([])
    assert markers_left(store) == []


@pytest.mark.parametrize("ends_by", ["commit", "rollback"])
@on_both_loops
async def test_nothing_is_acked_once_a_segment_was_found_damaged(store, ends_by):
    """The table is listed then, and every claim is gone before that."""
    backend = store.backend
    async with serving(backend) as service, shared_job(backend) as job:
        marked = path_of(job, 1)
        await mark(service, job.instant, marked)
        await backend.put(f".hoodie/.temp/{job.instant}/MARKERS1073741824", b"cut o")
        reported = report(job, backend, marked)
        if ends_by == "commit":
            await job._prepared([reported], reported.files)
        else:
            await job._fencer().close()
            await marked_in_storage(job._handle, job._reservation)
        with pytest.raises(Sealed):
            await mark(service, job.instant, path_of(job, 2))


@on_virtual_time
async def test_a_service_that_starts_beside_a_busy_one_does_not_wait_for_a_pause_of_it():
    inner = Store(has_staging=False).backend
    slowly = FaultyBackend(inner, slow("list", 0.06))
    async with serving(inner) as busy, serving(slowly) as starting, shared_job(inner) as job:
        await mark(busy, job.instant, path_of(job, 1))
        async with anyio.create_task_group() as tasks:

            async def keep_marking() -> None:
                for task in range(2000):
                    await mark(busy, job.instant, path_of(job, 1, task))
                    await anyio.sleep(0.05)

            tasks.start_soon(keep_marking)
            with anyio.fail_after(2.0):
                await mark(starting, job.instant, path_of(job, 2))
            tasks.cancel_scope.cancel()


@on_virtual_time
async def test_a_claim_without_a_segment_lists_no_table_at_a_commit():
    store = Store(has_staging=False)
    await committed(store.backend)
    storage = FaultyBackend(store.backend)
    async with shared_job(storage) as job:
        await store.backend.put_new(f".hoodie/.temp/{job.instant}/SERVER1024", b"killed before its first segment")
        await job.commit([])
    assert "" not in storage.paths("list")
