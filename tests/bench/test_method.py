from collections.abc import Callable
from functools import partial

from tallymark.bench.method import ROUNDS_MIN, Method, take_samples
from tests.support.loops import on_virtual_time


class Clock:
    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


class Slow:
    """A side whose calls take so long each on a clock of their own, in the order that a log keeps."""

    def __init__(self, name: str, clock: Clock, log: list[tuple[str, int]], call_s: Callable[[float], float]) -> None:
        self.name = name
        self._clock = clock
        self._log = log
        self._call_s = call_s

    async def sample(self, call_count: int) -> float:
        self._log.append((self.name, call_count))
        took = call_count * self._call_s(self._clock.now_s)
        self._clock.now_s += took
        return took


def steady(call_s: float, _now: float) -> float:
    return call_s


def sides(*call_s: float | Callable[[float], float]) -> tuple[list[Slow], Clock, list[tuple[str, int]]]:
    clock, log = Clock(), []
    made = [
        Slow("abc"[number], clock, log, some if callable(some) else partial(steady, some))
        for number, some in enumerate(call_s)
    ]
    return made, clock, log


@on_virtual_time
async def test_each_round_has_one_sample_of_every_side_and_begins_with_another():
    made, clock, log = sides(0.001, 0.001, 0.001)
    await take_samples(made, Method(round_count=6, case_s=60), call_count_max=1, now=clock)
    order = "".join(name for name, _ in log)
    assert order == "abcabc" + "abcbcacab" * 2


@on_virtual_time
async def test_samples_are_seconds_a_call_and_all_of_one_size():
    made, clock, log = sides(0.001, 0.002)
    method = Method(round_count=10, case_s=40.0, sample_s=0.1)
    found = await take_samples(made, method, call_count_max=1000, now=clock)
    assert found.call_count == 50  # of the slower one
    assert {count for _, count in log[4:]} == {50}
    assert {round(value, 9) for value in found.per_call_s["b"]} == {0.002}


@on_virtual_time
async def test_slow_calls_end_early_but_not_before_an_interval_can_be_given():
    made, clock, _ = sides(1.0, 2.0)
    found = await take_samples(made, Method(round_count=21, case_s=1.0), call_count_max=1000, now=clock)
    assert found.call_count == 1
    assert [len(times) for times in found.per_call_s.values()] == [ROUNDS_MIN, ROUNDS_MIN]


@on_virtual_time
async def test_calls_at_once_come_in_whole_multiples():
    made, clock, _ = sides(0.001)
    found = await take_samples(made, Method(round_count=6, sample_s=0.1), call_count_max=1000, step=32, now=clock)
    assert found.call_count == 96


@on_virtual_time
async def test_a_side_that_grows_slower_does_not_make_the_other_look_faster():
    made, clock, _ = sides(lambda now: 0.001 * (1 + now), lambda now: 0.001 * (1 + now))
    found = await take_samples(made, Method(round_count=12, case_s=60), call_count_max=5, now=clock)
    first, second = found.per_call_s["a"], found.per_call_s["b"]
    assert sum(a > b for a, b in zip(first, second, strict=True)) == 6
