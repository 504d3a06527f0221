"""A writer's lease: when it beats, what it learns by it, and when it asks the log before an ack."""

import anyio
import pytest

from tallymark.backends.memory import MemoryBackend
from tallymark.engine.errors import RolledBack
from tallymark.engine.settings import LeaseSettings
from tallymark.engine.timeline.lease import Lease, heartbeat_path
from tests.engine.timeline.entries import commit, instant, log, rollback, win
from tests.support.faulty import Fault, FaultyBackend, hanging, lost_answer, lost_request, slow

SETTINGS = LeaseSettings(heartbeat_interval_s=10, expiry_s=120)
BEAT = heartbeat_path(instant(1))


class Kept:
    """The lease of the first instant, over storage with faults."""

    def __init__(self, *faults: Fault) -> None:
        self.storage = FaultyBackend(MemoryBackend(), *faults)
        self.lease = Lease(self.storage, instant(1), log(self.storage), SETTINGS)

    async def keep_for(self, seconds: float) -> None:
        with anyio.move_on_after(seconds):
            await self.lease.keep()

    @property
    def beats(self) -> list[float]:
        """When each was started."""
        return [call.started_s for call in self.storage.calls if call.paths == (BEAT,)]

    @property
    def log_reads(self) -> int:
        return len([call for call in self.storage.calls if call.verb in ("get", "list")])

    async def ack_reads_the_log(self) -> bool:
        before = self.log_reads
        await self.lease.check_open()
        return self.log_reads > before


async def test_heartbeats_follow_the_first_at_every_interval_and_read_the_logs_tail():
    kept = Kept()
    kept.lease.begin()
    await anyio.sleep(7)
    await kept.keep_for(25)
    assert kept.beats == [10, 20, 30], "the reservation is the first"
    assert kept.log_reads == 3


async def test_at_its_next_beat_a_writer_learns_that_it_was_rolled_back():
    kept = Kept()
    await win(kept.storage.inner, rollback(1))
    with pytest.raises(RolledBack, match="at position 1, by another writer that took this one for dead, or by"):
        await kept.lease.keep()
    assert anyio.current_time() == 10


async def test_other_writers_ends_and_its_own_commit_do_not_stop_it():
    kept = Kept()
    await win(kept.storage.inner, rollback(2), commit(1))
    await kept.lease.renew()
    await kept.lease.check_open()


async def test_a_beat_leaves_it_to_the_commit_what_an_archived_entry_was_and_an_ack_is_refused():
    kept = Kept()
    await win(kept.storage.inner, commit(2))
    await kept.lease.renew()
    kept.lease._log.history.archive(1, instant(2))
    await kept.lease.renew()
    with pytest.raises(RolledBack, match="at a position that is archived"):
        await kept.lease.check_open()


@pytest.mark.parametrize(
    ("faults", "began"),
    [
        ([lost_request("put", nth=1), lost_answer("put", nth=2)], [10, 20, 30, 40, 50, 60]),
        ([hanging("put", nth=1)], [10, 50, 60]),
    ],
    ids=["lost", "never answered"],
)
async def test_missed_beats_are_survived(faults, began):
    kept = Kept(*faults)
    await kept.keep_for(61)
    assert kept.beats == began


@pytest.mark.parametrize(
    ("faults", "wait_s", "reads"),
    [([], 59, False), ([], 60, True), ([slow("put", 0, after_s=45)], 20, True)],
    ids=["young", "half the expiry old", "that old since its beginning, its answer being late"],
)
async def test_from_half_the_expiry_of_a_beat_on_an_ack_reads_the_log_first(faults, wait_s, reads):
    kept = Kept(*faults)
    assert await kept.ack_reads_the_log(), "no beat so far"
    await kept.lease.renew()
    await anyio.sleep(wait_s)
    assert await kept.ack_reads_the_log() is reads


@pytest.mark.parametrize(("wait_s", "reads"), [(59, False), (60, True)])
async def test_a_lease_starts_with_the_reservation(wait_s, reads):
    kept = Kept()
    kept.lease.begin()
    await anyio.sleep(wait_s)
    assert await kept.ack_reads_the_log() is reads is not kept.lease.is_fresh


async def test_a_missed_beat_renews_nothing():
    kept = Kept(lost_answer("put", nth=2))
    await kept.lease.renew()
    await anyio.sleep(50)
    with pytest.raises(OSError, match="lost"):
        await kept.lease.renew()
    await anyio.sleep(10)
    assert await kept.ack_reads_the_log()


async def test_giving_up_waits_for_the_heartbeat_in_flight_and_no_other_follows():
    kept = Kept(slow("put", 5))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(kept.lease.keep)
        await anyio.sleep(12)
        await kept.lease.give_up()
        assert anyio.current_time() == 15
        await kept.storage.delete([BEAT])
        await anyio.sleep(100)
        tasks.cancel_scope.cancel()
    assert [entry.path async for entry in kept.storage.list("")] == []


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
