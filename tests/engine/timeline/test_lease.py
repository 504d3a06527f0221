"""A writer's lease: when it beats, what it learns by it, and when it asks the log before an ack."""

import anyio
import pytest

from tallymark.backends.memory import MemoryBackend
from tallymark.engine.errors import RolledBack
from tallymark.engine.settings import LeaseSettings
from tallymark.engine.timeline.lease import Lease, heartbeat_path
from tests.engine.timeline.entries import commit, instant, log, rollback, win
from tests.support.faulty import FaultyBackend, hanging, lost_answer, lost_request, slow
from tests.support.loops import on_virtual_time

SETTINGS = LeaseSettings(heartbeat_interval_s=10, expiry_s=120)
BEAT = heartbeat_path(instant(1))


def lease(storage) -> Lease:
    return Lease(storage, instant(1), log(storage), SETTINGS)


def log_reads(storage: FaultyBackend) -> int:
    return len(storage.paths("get"))


@on_virtual_time
async def test_it_beats_at_every_interval_and_reads_the_logs_tail():
    storage = FaultyBackend(MemoryBackend())
    with anyio.move_on_after(35):
        await lease(storage).keep()
    beats = [call.started_s for call in storage.calls if call.paths == (BEAT,)]
    assert beats == [10, 20, 30]
    assert log_reads(storage) == 3


@on_virtual_time
async def test_after_a_begin_that_took_long_it_beats_an_interval_after_the_first_beat():
    storage = FaultyBackend(MemoryBackend())
    kept = lease(storage)
    await kept.begin()
    await anyio.sleep(7)
    with anyio.move_on_after(25):
        await kept.keep()
    assert [call.started_s for call in storage.calls if call.paths == (BEAT,)] == [0, 10, 20, 30]


@on_virtual_time
async def test_the_first_beat_is_as_good_as_any():
    storage = FaultyBackend(MemoryBackend())
    begun = lease(storage)
    await begun.begin()
    await anyio.sleep(SETTINGS.expiry_s / 2 - 1)
    await begun.check_open()
    assert log_reads(storage) == 0
    await anyio.sleep(1)
    await begun.check_open()
    assert log_reads(storage) == 1


@on_virtual_time
async def test_at_its_next_beat_a_writer_learns_that_it_was_rolled_back():
    storage = MemoryBackend()
    await win(storage, rollback(1))
    with pytest.raises(RolledBack, match="at position 1, by another writer that took this one for dead, or by"):
        await lease(storage).keep()
    assert anyio.current_time() == 10


@on_virtual_time
async def test_other_writers_ends_and_its_own_commit_do_not_stop_it():
    storage = MemoryBackend()
    await win(storage, rollback(2), commit(1))
    await lease(storage).renew()
    await lease(storage).check_open()


@on_virtual_time
async def test_missed_beats_are_survived():
    storage = FaultyBackend(MemoryBackend(), lost_request("put", nth=1), lost_answer("put", nth=2))
    with anyio.move_on_after(35):
        await lease(storage).keep()
    assert len(storage.paths("put")) == 3


@on_virtual_time
async def test_one_request_that_never_answers_is_not_the_last_beat():
    storage = FaultyBackend(MemoryBackend(), hanging("put", nth=1))
    with anyio.move_on_after(61):
        await lease(storage).keep()
    assert [call.started_s for call in storage.calls if call.verb == "put"] == [10, 50, 60]


@on_virtual_time
async def test_while_the_beat_is_young_an_ack_needs_no_reading():
    storage = FaultyBackend(MemoryBackend())
    mine = lease(storage)
    await mine.renew()
    read = log_reads(storage)
    await anyio.sleep(59)
    await mine.check_open()
    assert log_reads(storage) == read


@on_virtual_time
async def test_from_half_the_expiry_on_an_ack_asks_the_log_first():
    storage = FaultyBackend(MemoryBackend())
    mine = lease(storage)
    await mine.renew()
    await anyio.sleep(60)
    read = log_reads(storage)
    await mine.check_open()
    assert log_reads(storage) == read + 1
    await win(storage.inner, rollback(1))
    with pytest.raises(RolledBack):
        await mine.check_open()


@on_virtual_time
async def test_a_beat_counts_from_its_beginning():
    """The put may have landed at once, and its answer, and the reading, taken long."""
    storage = FaultyBackend(MemoryBackend(), slow("put", 0, after_s=45))
    mine = lease(storage)
    await mine.renew()
    await anyio.sleep(20)
    read = log_reads(storage)
    await mine.check_open()
    assert log_reads(storage) == read + 1


@on_virtual_time
async def test_a_missed_beat_renews_nothing():
    storage = FaultyBackend(MemoryBackend(), lost_answer("put", nth=2))
    mine = lease(storage)
    await mine.renew()
    await anyio.sleep(50)
    with pytest.raises(OSError, match="lost"):
        await mine.renew()
    await anyio.sleep(10)
    read = log_reads(storage)
    await mine.check_open()
    assert log_reads(storage) == read + 1


@on_virtual_time
async def test_a_lease_that_never_beat_asks_the_log():
    storage = FaultyBackend(MemoryBackend())
    await lease(storage).check_open()
    assert log_reads(storage) == 1


@on_virtual_time
async def test_a_lease_that_was_given_up_beats_no_more():
    storage = FaultyBackend(MemoryBackend())
    mine = lease(storage)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(mine.keep)
        await anyio.sleep(15)
        await mine.give_up()
        await anyio.sleep(100)
        tasks.cancel_scope.cancel()
    assert storage.paths("put") == [BEAT]


@on_virtual_time
async def test_giving_up_waits_for_the_beat_that_is_on_its_way():
    storage = FaultyBackend(MemoryBackend(), slow("put", 5))
    mine = lease(storage)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(mine.keep)
        await anyio.sleep(12)
        await mine.give_up()
        assert anyio.current_time() == 15
        await storage.delete([BEAT])
        tasks.cancel_scope.cancel()
    assert [entry.path async for entry in storage.list("")] == []


@on_virtual_time
async def test_after_the_machine_has_slept_the_log_is_asked_although_the_beat_looks_young():
    """The monotonic clock stood still meanwhile, and others had their lease's time to roll it back."""
    storage = MemoryBackend()
    asleep = [0.0]
    mine = Lease(storage, instant(1), log(storage), SETTINGS, asleep_s=lambda: asleep[0])
    await mine.renew()
    await win(storage, rollback(1))
    await mine.check_open()
    asleep[0] = 59.0
    await mine.check_open()
    asleep[0] = 60.0
    with pytest.raises(RolledBack):
        await mine.check_open()
