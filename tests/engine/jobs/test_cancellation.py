"""A write is cancelled at each of its calls to storage in turn; its block still ends whole."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import anyio
import anyio.lowlevel
import pytest
import trio
import trio.testing

from tallymark.backends.memory import MemoryBackend
from tallymark.engine.errors import RolledBack
from tallymark.engine.settings import MarkerKind, MarkerSettings
from tests.engine.jobs.scene import Store, begin, committed, mark, name_of, table, write_rows
from tests.support.dying import DyingBackend
from tests.support.loops import on_both_loops
from tests.support.services.posted import PostedBackend
from tests.table_invariants import projection_is_a_prefix_of_the_log

PASSES = 200
"""Of the event loop: more than a write takes from its begin to the ack of a marker."""


class CancellingBackend(DyingBackend):
    """At the ``at``-th call a scope is cancelled: before the call reaches storage, or once it has."""

    def __init__(self, inner: MemoryBackend, *, at: int | None, lands: bool) -> None:
        super().__init__(inner)
        self.scope = anyio.CancelScope()
        self._cancel_at = at
        self._lands = lands

    async def _through(self, verb, paths, do):
        self.count += 1
        is_the_one = self.count == self._cancel_at
        if is_the_one and not self._lands:
            self.scope.cancel()
        try:
            return await do()
        finally:
            if is_the_one and self._lands:
                self.scope.cancel()

    def _publish(self, path, file) -> None:
        file.publish()  # blocks: nothing can be cancelled there


async def overwrite(backend: CancellingBackend, kind: MarkerKind) -> bool:
    """A write that meets a loser, within the scope; whether its job had begun."""
    has_started = False
    with backend.scope:
        async with begin(backend, "overwrite", markers=MarkerSettings(kind=kind)) as job:
            has_started = True
            await mark(job, backend, [f"month=9/{name_of(job, task=2)}"])
            await write_rows(job, backend, task=1, attempt=0)
            winner = await write_rows(job, backend, task=1, attempt=1)
            await job.commit([winner])
    return has_started


def run(store: Store, kind: MarkerKind, *, at: int | None, lands: bool) -> tuple[CancellingBackend, bool]:
    async def main() -> tuple[CancellingBackend, bool]:
        backend = CancellingBackend(store.backend, at=at, lands=lands)
        with trio.fail_after(1e6):
            return backend, await overwrite(backend, kind)

    return trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0))


def fresh_store(*, has_staging: bool) -> Store:
    store = Store(has_staging=has_staging)
    anyio.run(committed, store.backend, backend="trio")
    return store


@pytest.mark.no_cover
@pytest.mark.parametrize(
    ("has_staging", "kind", "lands"),
    [(True, "batched", True), (True, "direct", False), (False, "direct", True), (False, "batched", False)],
)
def test_wherever_a_write_is_cancelled_its_block_ends_whole(has_staging, kind, lands):
    calls = run(fresh_store(has_staging=has_staging), kind, at=None, lands=lands)[0].count
    for at in range(1, calls + 1):
        store = fresh_store(has_staging=has_staging)
        backend, has_started = run(store, kind, at=at, lands=lands)
        assert backend.scope.cancel_called
        try:
            store.check_only_committed_files()
            projection_is_a_prefix_of_the_log(store.objects)
            if has_started:
                store.check_at_rest()
            else:
                assert len(store.log_entries) <= 2
            store.clock.pass_lease()
            anyio.run(committed, store.backend, backend="trio")
            store.check_at_rest()
        except AssertionError as error:
            raise AssertionError(f"cancelled at call {at} of {calls}: {error}") from error


@pytest.mark.no_cover
def test_in_whatever_pass_of_asyncio_s_own_loop_a_task_is_cancelled_that_begins_a_job_it_ends():
    """By ``Task.cancel``, which is no scope's."""

    async def cancelled_after(passes: int) -> None:
        async def write() -> None:
            async with begin(Store(has_staging=False).backend, markers=MarkerSettings()):
                await anyio.sleep_forever()

        task = asyncio.create_task(write())
        for _ in range(passes):
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(task, 30)

    for passes in range(PASSES):
        asyncio.run(cancelled_after(passes))


@on_both_loops
async def test_a_cancelled_block_rolls_back_on_either_loop(store):
    with anyio.CancelScope() as scope:
        async with begin(store.backend, markers=MarkerSettings()) as job:
            await write_rows(job, store.backend)
            scope.cancel()
            await anyio.sleep_forever()
    assert scope.cancelled_caught
    store.check_only_commits_are_left()


@asynccontextmanager
async def late_puts(store: Store, path: str, *delays_s: float) -> AsyncIterator[PostedBackend]:
    """Storage on which puts of such paths land after these delays in turn, the last one's from then on, and go on
    when their sender stops waiting."""
    left = list(delays_s)

    def delay(posted: str) -> float:
        return 0 if path not in posted else left.pop(0) if len(left) > 1 else left[0]

    async with anyio.create_task_group() as network:
        yield PostedBackend(store.backend, network, delay)


@pytest.mark.parametrize("delay_s", [1, 30])
async def test_an_entry_that_lands_after_the_cancellation_is_either_the_jobs_or_void(unstaged, delay_s):
    """The put was sent, its sender stopped waiting: whichever of commit and rollback gets the number counts."""
    async with late_puts(unstaged, "/log/", delay_s, 10) as storage:
        with anyio.move_on_after(0.5):
            async with begin(storage) as job:
                report = await write_rows(job, storage)
                await job.commit([report])
    unstaged.check_at_rest()
    assert len(unstaged.data_files - {*unstaged.committed_files}) in (0, 2)
    assert (unstaged.log_entries[0]["kind"] == "commit") == (delay_s == 1)


@pytest.mark.parametrize("ends", ["by an error", "cancelled"])
async def test_a_segment_that_is_in_flight_at_the_end_is_waited_for_before_markers_are_dropped(unstaged, ends):
    async with late_puts(unstaged, "/MARKERS1", 20) as storage:
        with suppress(ZeroDivisionError), anyio.move_on_after(1 if ends == "cancelled" else 1000):
            async with begin(storage, markers=MarkerSettings()) as job:
                with anyio.move_on_after(1):
                    await mark(job, storage, [f"month=1/{name_of(job)}"])
                raise ZeroDivisionError
    unstaged.check_only_commits_are_left()


async def test_a_segment_that_is_in_flight_when_another_rolls_the_job_back_is_waited_for(staged):
    """The heartbeat learns it, and cancels the block."""
    async with late_puts(staged, "/MARKERS1", 20) as storage:
        with pytest.raises(RolledBack):  # noqa: PT012
            async with begin(storage, markers=MarkerSettings()) as job:
                await table(staged.backend).rollback(job.instant)
                await mark(job, storage, [f"month=1/{name_of(job)}"])
    staged.check_no_bookkeeping()


@pytest.mark.parametrize("ends", ["cancelled", "committed"])
async def test_a_heartbeat_that_is_in_flight_at_the_end_is_waited_for_before_the_heartbeat_is_dropped(staged, ends):
    async with late_puts(staged, "/beat/2", 0, 0, 20, 0) as storage:
        with anyio.move_on_after(11 if ends == "cancelled" else 1000):
            async with begin(table(storage)) as job:
                await anyio.sleep(11 if ends == "committed" else 1000)
                await job.commit([])
    assert [entry["kind"] for entry in staged.log_entries] == ["commit" if ends == "committed" else "rollback"]
    staged.check_no_bookkeeping()
    staged.check_at_rest()
