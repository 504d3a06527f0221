"""Independent writers of one log: the log stays busy, and no writer starves."""

from itertools import count
from statistics import median

import anyio
import pytest

from tallymark.backends.memory import MemoryBackend
from tallymark.engine.timeline.contention import WAIT_S_MAX, Contention
from tests.engine.timeline.entries import commit, instant, log
from tests.support.faulty import FaultyBackend, slow

REQUEST_S = 0.03
SECONDS = 5.0


async def test_sixteen_writers_keep_the_log_busy_and_none_starves():
    half_s = REQUEST_S / 2
    storage = FaultyBackend(MemoryBackend(), *(slow(verb, half_s, after_s=half_s) for verb in ("get", "put_new")))
    numbers = count(1)
    waits = []

    async def write() -> None:
        own = log(storage)
        while anyio.current_time() < SECONDS:
            await anyio.sleep(4 * REQUEST_S)  # reserve, mark, put the file, and what ends a job
            started = anyio.current_time()
            await own.win(commit(next(numbers)), check=lambda _: None, is_protected=lambda: True)
            waits.append(anyio.current_time() - started)

    async with anyio.create_task_group() as writers:
        for _ in range(16):
            writers.start_soon(write)
    assert len(waits) >= 10 * SECONDS
    assert max(waits) <= 20 * median(waits)


def test_a_wait_depends_on_the_put_that_was_lost_and_is_bounded():
    def waits(put_s: float) -> list[float]:
        contention = Contention()
        return [contention.lost(instant(1), put_s) for _ in range(100)]

    assert waits(0.0) == [0.0] * 100
    assert waits(0.06) == pytest.approx([2 * wait_s for wait_s in waits(0.03)])
    assert max(waits(10.0)) == WAIT_S_MAX


def test_after_a_loss_as_much_is_read_at_once_as_was_there_the_last_time():
    contention = Contention()
    contention.has_read(5)
    assert contention.window == 1
    contention.lost(instant(1), 0.03)
    assert contention.window == 6
    contention.has_read(0)
    assert contention.window == 2
    contention.won()
    assert contention.window == 1
