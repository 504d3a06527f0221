"""A store that asks for fewer requests: what it allows is used, what waits goes in larger batches, nothing is lost."""

import anyio
import pytest
import trio

from tallymark.backends.memory import MemoryBackend
from tallymark.backends.retry import Retries, RetrySettings
from tallymark.backends.retrying import RetryingBackend
from tallymark.engine.errors import FlushFailed
from tallymark.engine.markers import MarkerDirectory, open_marker_engine
from tallymark.engine.settings import MarkerSettings
from tests.engine.markers.recorded import INSTANT, stored
from tests.invariants import markers_in
from tests.support.faulty import FaultyBackend, hanging, slow
from tests.support.limited import LimitedBackend
from tests.support.loops import on_virtual_time

pytestmark = [pytest.mark.slow, pytest.mark.no_cover]

NO_MERGES = MarkerSettings(merge_bytes_ratio_max=1)
"""So that each put is a flush."""


class Requests:
    """One request a marker, at a steady rate."""

    def __init__(self, directory: MarkerDirectory) -> None:
        self._directory = directory
        self.acked: list[str] = []
        self.failed: list[str] = []
        self.acks_s: list[float] = []

    async def come(self, rate: float, seconds: float, *, label: str = "") -> None:
        """Returns when all are answered."""
        begun = anyio.current_time()
        async with anyio.create_task_group() as tasks:
            for number in range(round(rate * seconds)):
                await trio.sleep_until(begun + number / rate)
                tasks.start_soon(self._ask, f"{label}{number}.parquet")

    async def _ask(self, path: str) -> None:
        asked = anyio.current_time()
        try:
            await self._directory.create(path)
        except FlushFailed:
            self.failed.append(path)
        else:
            self.acked.append(path)
            self.acks_s.append(anyio.current_time() - asked)


async def stored_names(storage: LimitedBackend) -> set[str]:
    """What lies in segments, without the engine."""
    return {marker.removesuffix(".marker.CREATE") for _, marker in markers_in(await stored(storage))}


class Reporting(LimitedBackend):
    @property
    def throttled_count(self) -> int:
        return self.tried - self.allowed


class Repeating(RetryingBackend):
    """Repeats throttled puts by itself, as the object stores do."""

    async def put_new(self, path: str, data: bytes) -> None:
        await self._retries.run(lambda: self._inner.put_new(path, data))


@pytest.mark.parametrize(
    ("put_s", "rate", "seconds", "is_repeating"),
    [(0.03, 1.0, 60, False), (0.1, 5.0, 30, False), (0.002, 50.0, 10, False), (0.03, 10.0, 40, True)],
)
@on_virtual_time
async def test_what_a_store_allows_is_used_and_little_is_tried_beyond(put_s, rate, seconds, is_repeating):
    """Much less is used where a backend repeats throttled puts by itself: its pauses are added."""
    storage = (Reporting if is_repeating else LimitedBackend)(rate=rate, put_s=put_s, refusal_s=0.005)
    backend = Repeating(storage, Retries(RetrySettings(), chance=lambda: 0.5)) if is_repeating else storage
    async with open_marker_engine(backend, NO_MERGES) as engine:
        requests = Requests(engine.directory(INSTANT))
        await requests.come(100, seconds)
        warm = (storage.tried, storage.allowed, anyio.current_time())
        await requests.come(100, seconds, label="then-")
        tried, allowed = storage.tried - warm[0], storage.allowed - warm[1]
        could_be = rate * (anyio.current_time() - warm[2])
        assert engine.statistics().throttled > 3
        assert allowed >= (0.25 if is_repeating else 0.65) * could_be
        assert tried <= (1.3 if is_repeating else 1.25) * allowed
        assert requests.failed == []
        assert set(requests.acked) == await stored_names(storage)


@on_virtual_time
async def test_batches_grow_while_a_store_throttles_and_shrink_when_it_no_longer_does():
    storage = LimitedBackend(rate=None, put_s=0.03)
    async with open_marker_engine(storage, NO_MERGES) as engine:
        requests = Requests(engine.directory(INSTANT))
        await requests.come(200, 5, label="a")
        usual_s = engine.statistics().interval_s
        storage.rate = 4.0
        await requests.come(200, 20, label="b")
        throttled = engine.statistics()
        assert throttled.interval_s > 0.2 > 15 * usual_s
        assert throttled.largest_batch > 40
        assert throttled.throttled > 3
        storage.rate = None
        await requests.come(200, 30, label="c")
        assert engine.statistics().interval_s == pytest.approx(usual_s, rel=0.05)
        assert requests.acks_s[-1] < 0.05
        assert requests.failed == []


@on_virtual_time
async def test_a_store_that_takes_nothing_for_a_minute_is_not_stormed_and_everybody_is_answered_afterwards():
    storage = LimitedBackend(rate=0.0, put_s=0.03)
    async with open_marker_engine(storage, NO_MERGES) as engine:
        directory = engine.directory(INSTANT)
        storage.rate = None
        await directory.create("first.parquet")
        storage.rate, begun = 0.0, storage.tried
        requests = Requests(directory)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(requests.come, 100, 50)
            await anyio.sleep(60)
            assert storage.tried - begun < 40
            assert engine.statistics().interval_s == 5.0
            storage.rate = None
        assert len(requests.acked) == 5000
        assert set(requests.acked) | {"first.parquet"} == await stored_names(storage)


@on_virtual_time
async def test_a_store_that_never_takes_anything_again_fails_its_requests_and_keeps_none_waiting():
    storage = LimitedBackend(rate=None, put_s=0.03)
    async with open_marker_engine(storage, NO_MERGES) as engine:
        directory = engine.directory(INSTANT)
        await directory.create("first.parquet")
        storage.rate = storage._tokens = 0.0
        requests = Requests(directory)
        with anyio.fail_after(300):
            await requests.come(10, 10)
        assert (len(requests.failed), requests.acked) == (100, [])


@on_virtual_time
async def test_while_a_store_throttles_no_second_copies_are_sent():
    storage = LimitedBackend(rate=None, put_s=0.03)
    async with open_marker_engine(storage, NO_MERGES) as engine:
        requests = Requests(engine.directory(INSTANT))
        await requests.come(100, 5, label="a")
        storage.rate = 2.0
        await requests.come(100, 5, label="b")
        storage.put_s = 2.0
        before = engine.statistics().hedges
        await requests.come(100, 10, label="c")
        assert engine.statistics().hedges - before <= 2, "those that were late before the store throttled anew"


@on_virtual_time
async def test_no_object_of_a_marker_directory_is_written_twice_within_a_second():
    """What GCS asks of each name: claims, segments and what merges put are all written once."""
    storage = FaultyBackend(MemoryBackend(), slow("put_new", 0.03))
    async with open_marker_engine(storage) as engine:
        await Requests(engine.directory(INSTANT)).come(200, 30)
        assert engine.statistics().merges > 10
    written = storage.paths("put") + storage.paths("put_new")
    assert len(written) == len(set(written)) > 1000


@on_virtual_time
async def test_a_store_that_is_silent_at_first_does_not_hold_up_flushes_once_it_answers():
    """The first claim is given up after half a minute; what it took says nothing of a put."""
    storage = FaultyBackend(MemoryBackend(), hanging("put_new", "*/SERVER*", nth=1), slow("put_new", 0.02))
    async with open_marker_engine(storage, MarkerSettings()) as engine:
        requests = Requests(engine.directory(INSTANT))
        await requests.come(100, 40.0)
    assert not requests.failed
    assert max(requests.acks_s[-800:]) < 0.05, "asked in the last eight seconds"
