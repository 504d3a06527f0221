"""Repeating calls: pauses, bounds and the budget, on virtual time."""

from dataclasses import fields, replace

import anyio
import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st

from tallymark.backends import NotFound, StorageOptions, Throttled, Unavailable
from tallymark.backends.meter import RequestMeter
from tallymark.backends.retry import Retries, RetrySettings, longest_pause_s
from tests.support.loops import on_virtual_time

PATIENT = RetrySettings(attempt_count=1000, timeout_s=1e5, budget_count=1000)


class Store:
    """Answers after so many failures; each attempt is noted with its time."""

    def __init__(self, failures, error=None, takes_s=0.0):
        self.failures = failures
        self.error = error or Unavailable("the answer was lost")
        self.takes_s = takes_s
        self.asked_at = []

    async def ask(self):
        self.asked_at.append(anyio.current_time())
        await anyio.sleep(self.takes_s)
        if len(self.asked_at) <= self.failures:
            raise type(self.error)(*self.error.args)
        return "answer"


def always(share):
    return lambda: share


@on_virtual_time
async def test_an_answer_of_any_other_kind_is_not_asked_for_twice():
    store = Store(failures=1, error=NotFound("a does not exist"))
    with pytest.raises(NotFound, match=r"^a does not exist$"):
        await Retries().run(store.ask)
    assert len(store.asked_at) == 1


@on_virtual_time
async def test_the_pause_doubles_up_to_its_longest_and_is_drawn_between_nothing_and_that():
    store = Store(failures=8)
    await Retries(PATIENT, chance=always(0.5)).run(store.ask)
    pauses = [round(later - earlier, 6) for earlier, later in zip(store.asked_at, store.asked_at[1:], strict=False)]
    assert pauses == [0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 2.5, 2.5]


@on_virtual_time
async def test_a_store_that_throttles_is_left_alone_for_longer():
    store = Store(failures=4, error=Throttled("slow down"))
    await Retries(PATIENT, chance=always(1.0)).run(store.ask)
    assert store.asked_at == [0, 1, 3, 7, 12]


@on_virtual_time
async def test_after_the_last_attempt_the_last_error_says_how_often_and_how_long_it_was_tried():
    store = Store(failures=99, error=Throttled("slow down"), takes_s=1.0)
    retries = Retries(RetrySettings(attempt_count=3), chance=always(0.5))
    with pytest.raises(Throttled, match=r"^slow down \(tried 3 times in 4.5 s\)$"):
        await retries.run(store.ask)
    assert len(store.asked_at) == 3
    assert retries.statistics().given_up == 1


@on_virtual_time
async def test_a_store_that_never_answers_is_given_up_within_the_bound():
    store = Store(failures=0, takes_s=1e6)
    with pytest.raises(Unavailable, match=r"no answer within \d"):
        await Retries(chance=always(1.0)).run(store.ask)
    assert anyio.current_time() == RetrySettings().timeout_s
    assert store.asked_at == [0.0, 10.1]


@on_virtual_time
async def test_a_large_upload_gets_the_time_that_its_bytes_take():
    store = Store(failures=0, takes_s=60.0)
    assert await Retries().run(store.ask, sent=64 << 20) == "answer"
    assert anyio.current_time() == 60.0


@on_virtual_time
async def test_an_attempt_that_could_not_begin_in_time_is_not_waited_for():
    store = Store(failures=99, takes_s=9.0)
    with pytest.raises(Unavailable, match=r"tried 2 times in 18.1 s"):
        await Retries(RetrySettings(pause_s=0.1, timeout_s=18.2), chance=always(0.999)).run(store.ask)


@on_virtual_time
async def test_an_outage_does_not_multiply_the_requests_of_many_callers():
    settings = RetrySettings(budget_count=20, budget_per_s=0.0)
    store = Store(failures=10**6)
    retries = Retries(settings)

    async def ask():
        with pytest.raises(Unavailable, match="the answer was lost"):
            await retries.run(store.ask)

    for _ in range(10):
        async with anyio.create_task_group() as tasks:
            for _ in range(100):
                tasks.start_soon(ask)
    found = retries.statistics()
    assert found.calls == found.given_up == 1000
    assert 100 <= found.repeats <= 1000 * 0.5 + 20
    assert len(store.asked_at) == 1000 + found.repeats
    assert found.refused > 0
    assert found.budget_left < 1


@on_virtual_time
async def test_the_budget_is_full_again_some_time_after_an_outage():
    retries = Retries(RetrySettings(budget_count=20, budget_ratio=0.0, budget_per_s=5.0), chance=always(0.0))
    with pytest.raises(Unavailable, match=r"tried 10 times in 0.0 s"):
        await retries.run(Store(failures=99).ask)
    with pytest.raises(Unavailable):
        await retries.run(Store(failures=99).ask)
    with pytest.raises(Unavailable, match=r"tried 3 times in 0.0 s; too many calls fail to repeat each"):
        await retries.run(Store(failures=99).ask)
    await trio.sleep(4.0)
    assert await retries.run(Store(failures=9).ask) == "answer"


@on_virtual_time
async def test_a_caller_who_stops_waiting_stops_at_once():
    store = Store(failures=99)
    with anyio.move_on_after(0.42) as scope:
        await Retries(PATIENT).run(store.ask)
    assert scope.cancelled_caught
    assert anyio.current_time() == pytest.approx(0.42)


@given(
    failures=st.lists(st.tuples(st.sampled_from([Unavailable, Throttled]), st.floats(0, 30)), max_size=30),
    chances=st.lists(st.floats(0, 1, exclude_max=True), min_size=1),
    attempt_count=st.integers(1, 12),
    timeout_s=st.floats(0.5, 60),
    budget_count=st.integers(0, 8),
)
def test_no_call_breaks_a_bound(failures, chances, attempt_count, timeout_s, budget_count):
    settings = RetrySettings(
        attempt_count=attempt_count, timeout_s=timeout_s, budget_count=budget_count, budget_ratio=0.0, budget_per_s=0.0
    )
    attempts = []

    async def ask():
        attempts.append(anyio.current_time())
        if len(attempts) > len(failures):
            return "answer"
        error, takes_s = failures[len(attempts) - 1]
        await anyio.sleep(takes_s)
        raise error("lost")

    async def main():
        drawn = iter(chances * 20)
        retries = Retries(settings, chance=lambda: next(drawn, 0.0))
        try:
            assert await retries.run(ask) == "answer"
        except Unavailable:
            assert retries.statistics().given_up == 1
        assert anyio.current_time() <= timeout_s + 1e-6
        assert len(attempts) <= min(attempt_count, budget_count + 1)
        assert retries.statistics().repeats == len(attempts) - 1

    trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0))


@given(attempts=st.integers(1, 60))
def test_no_pause_is_longer_than_the_longest(attempts):
    settings = RetrySettings()
    assert 0 < longest_pause_s(settings, Unavailable(""), attempts) <= settings.pause_max_s
    assert longest_pause_s(settings, Unavailable(""), attempts) <= longest_pause_s(settings, Throttled(""), attempts)


@pytest.mark.parametrize("name", ["attempt_count", "timeout_s", "attempt_timeout_s", "bytes_per_s_min"])
def test_a_bound_of_nothing_is_refused(name):
    with pytest.raises(ValueError, match=f"setting {name}=0: {name} is a number above zero"):
        RetrySettings(**{name: 0})


RETRY_OPTIONS = {
    "timeout_s": "answer_timeout_s",
    "attempt_timeout_s": "request_timeout_s",
    "bytes_per_s_min": "data_bytes_per_s_min",
    "attempt_count": "retry_attempt_count",
    "pause_s": "retry_pause_s",
    "throttled_pause_s": "retry_throttled_pause_s",
    "pause_max_s": "retry_pause_max_s",
    "budget_count": "retry_budget_count",
    "budget_ratio": "retry_budget_ratio",
    "budget_per_s": "retry_budget_per_s",
}


@pytest.mark.parametrize("name", [field.name for field in fields(RetrySettings)])
def test_every_setting_has_an_option_of_storage(name):
    chosen = StorageOptions(**{RETRY_OPTIONS[name]: 15})  # type: ignore[arg-type]
    assert RetrySettings.of(chosen) == replace(RetrySettings(), **{name: 15})


@on_virtual_time
async def test_a_last_attempt_that_is_cut_short_does_not_hide_what_the_others_said():
    retries = Retries(RetrySettings(attempt_count=3, timeout_s=2.5, pause_s=0, budget_count=10), chance=lambda: 0.0)

    async def fail_slowly() -> None:
        await anyio.sleep(1)
        raise Unavailable("the connection was refused")

    with pytest.raises(Unavailable, match=r"the connection was refused \(tried 3 times in 2\.5 s"):
        await retries.run(fail_slowly)


@on_virtual_time
async def test_a_meter_counts_the_repeats():
    meter = RequestMeter()
    await Retries(meter=meter).run(Store(failures=3).ask)
    assert meter.statistics().retries == 3
