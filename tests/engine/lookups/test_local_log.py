"""Blocks by the log itself, in a process that cannot ask the service."""

from dataclasses import replace

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tallymark.backends.errors import Unavailable
from tallymark.backends.memory import MemoryBackend
from tallymark.engine.errors import CorruptObject, ServiceUnavailable
from tallymark.engine.lookups.local_log import LogBlocks, ReadingPace
from tallymark.engine.settings import ViewSettings
from tallymark.engine.tasks.ticket import WriteTicket
from tallymark.engine.views.view import live_files
from tests.engine.tasks.scene import ticket
from tests.engine.timeline.entries import clean, commit, data_file, log, win
from tests.support.faulty import Fault, FaultyBackend, refused, slow
from tests.support.loops import on_both_loops, on_virtual_time

FIRST, SECOND = data_file("month=1", 1), data_file("month=1", 2)
ENTRIES = (commit(1, added=(FIRST,)), commit(2, added=(SECOND,), removed=(FIRST,)), clean(3, horizon=2))


async def job_at(storage: MemoryBackend, position: int, **views) -> WriteTicket:
    """Of a job that began at this position of the log of ``ENTRIES``."""
    if not storage._objects:
        await win(storage, *ENTRIES)
    history = await log(storage).refresh()
    settings = ViewSettings(**{"log_jitter_s": 0.0, **views})
    return replace(ticket(), base=position, base_hash=history.hash_at(position), views=settings)


def blocks_of(job: WriteTicket, backend, *, random: float = 0.0) -> LogBlocks:
    return LogBlocks(job, lambda: backend, ReadingPace(monotonic=anyio.current_time, random=lambda: random))


async def blocks_among(*faults: Fault, random: float = 0.0, **views) -> tuple[LogBlocks, FaultyBackend]:
    """Of a job at the head of the log, by a storage with these faults."""
    storage = MemoryBackend()
    job, backend = await job_at(storage, 3, **views), FaultyBackend(storage, *faults)
    return blocks_of(job, backend, random=random), backend


@on_both_loops
async def test_each_position_has_its_answer_even_one_whose_files_a_clean_has_let_go():
    storage = MemoryBackend()
    for position, files in enumerate([(), (FIRST,), (SECOND,), (SECOND,)]):
        found = await blocks_of(await job_at(storage, position), storage).blocks(["month=1", "none"])
        assert live_files(found["month=1"], "month=1", position) == files
        assert found["none"] == b""


@on_virtual_time
async def test_many_who_ask_at_once_cost_one_reading_and_those_after_them_none():
    blocks, backend = await blocks_among(slow("get", 1.0))
    async with anyio.create_task_group() as tasks:
        for _ in range(50):
            tasks.start_soon(blocks.blocks, ["month=1"])
    await blocks.blocks(["month=1", "month=2"])
    assert (len(backend.calls), blocks.readings) == (4, 1)  # a look for a checkpoint, and the entries


@on_virtual_time
async def test_a_reading_begins_within_the_jitter():
    blocks, backend = await blocks_among(random=0.5, log_jitter_s=8.0)
    began = anyio.current_time()
    await blocks.blocks(["month=1"])
    assert backend.calls[0].started_s - began == 4.0


@on_virtual_time
async def test_a_reading_that_fails_fails_for_all_who_wait_and_the_next_call_reads_anew():
    blocks, _ = await blocks_among(slow("get", 1.0), refused("get", nth=1, error=Unavailable("dark")))
    refusals: list[float] = []

    async def ask() -> None:
        with pytest.raises(Unavailable, match="dark"):
            await blocks.blocks(["month=1"])
        refusals.append(anyio.current_time())

    began = anyio.current_time()
    async with anyio.create_task_group() as tasks:
        for _ in range(10):
            tasks.start_soon(ask)
    assert {at - began for at in refusals} == {1.0}
    assert live_files((await blocks.blocks(["month=1"]))["month=1"], "month=1", 3) == (SECOND,)
    assert blocks.readings == 2


@on_virtual_time
async def test_storage_that_is_dark_is_read_so_often_a_minute_and_the_others_wait_or_are_told():
    blocks, _ = await blocks_among(refused("get", error=Unavailable("dark")), log_readings=2, log_wait_s=30.0)
    for kind in (Unavailable, Unavailable, ServiceUnavailable, ServiceUnavailable):
        with pytest.raises(kind):
            await blocks.blocks(["month=1"])
    assert blocks.readings == 2
    await anyio.sleep(60.0)
    with pytest.raises(Unavailable):
        await blocks.blocks(["month=1"])


@on_virtual_time
async def test_a_log_that_does_not_come_is_given_up_at_the_bound():
    blocks, _ = await blocks_among(slow("get", 1000.0), log_wait_s=20.0)
    began = anyio.current_time()
    with pytest.raises(ServiceUnavailable, match=r"not read within 20 s \(ViewSettings\.log_wait_s\)"):
        await blocks.blocks(["month=1"])
    assert anyio.current_time() - began == 20.0


@on_both_loops
async def test_a_table_that_was_made_anew_is_not_answered_for():
    storage, other = MemoryBackend(), MemoryBackend()
    job = await job_at(storage, 2)
    await win(other, ENTRIES[0], commit(2, nonce="another", added=(SECOND,)))
    with pytest.raises(CorruptObject, match="was the table created again"):
        await blocks_of(job, other).blocks(["month=1"])


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def admit(pace: ReadingPace, *, count: int = 2, jitter_s: float = 0.0, patience_s: float = 1000.0) -> float:
    return pace.admit(count_a_minute=count, jitter_s=jitter_s, patience_s=patience_s)


def test_a_reading_begins_at_a_random_moment_within_the_jitter():
    draws = iter([0.0, 0.25, 0.999])
    pace = ReadingPace(monotonic=Clock(), random=lambda: next(draws))
    assert [admit(pace, count=9, jitter_s=2.0) for _ in range(3)] == [0.0, 0.5, 1.998]


def test_a_reading_too_many_waits_until_the_minute_is_over_or_is_told_that_this_is_too_long_and_counts_for_nothing():
    clock = Clock()
    pace = ReadingPace(monotonic=clock, random=lambda: 0.0)
    assert admit(pace) == 0.0
    clock.now = 10.0
    assert admit(pace) == 0.0
    clock.now = 15.0
    for _ in range(2):
        with pytest.raises(ServiceUnavailable, match=r"2 times within a minute \(ViewSettings\.log_readings=2\)"):
            admit(pace, patience_s=44.0)
    assert admit(pace, patience_s=45.0) == 45.0
    assert admit(pace) == 55.0


@given(st.lists(st.floats(0, 40), max_size=30), st.integers(1, 4), st.floats(0, 5), st.data())
def test_no_minute_has_more_readings_than_may_be(pauses, count, jitter_s, data):
    clock = Clock()
    pace = ReadingPace(monotonic=clock, random=lambda: data.draw(st.floats(0, 0.999)))
    begun: list[float] = []
    for pause_s in pauses:
        clock.now += pause_s
        begun.append(clock.now + admit(pace, count=count, jitter_s=jitter_s, patience_s=1e9))
    begun.sort()
    assert all(later - earlier >= 59.999 for earlier, later in zip(begun, begun[count:], strict=False))
