"""Marker flushes that fail in every way, among requesters that come, repeat themselves and lose patience.

Hypothesis draws a scenario, trio's clock plays it without waiting, the invariants judge its history.
"""

from dataclasses import dataclass
from functools import partial
from typing import Literal

import pytest
import trio
import trio.lowlevel
import trio.testing
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tallymark.engine.errors import RolledBack
from tallymark.engine.markers import open_marker_engine
from tallymark.engine.settings import MarkerSettings
from tests.engine.markers.recorded import (
    DIRECT_MARKERS,
    INSTANT,
    SEGMENTS,
    RecordedServer,
    RecordedStore,
    ask,
    stored,
)
from tests.history import Acked, Asked, Ended, History
from tests.invariants import every_marker_invariant, every_request_is_answered
from tests.support.examples import examples
from tests.support.faulty import Fault, Verb, hanging, lost_answer, lost_request, refused, slow

pytestmark = pytest.mark.no_cover

PATHS = ("year=2013/a.parquet", "year=2013/b.parquet", *(f"{name}.parquet" for name in "cdefghij"))
QUIET_S = 200.0
"""By then everything has been answered: no flush takes longer than 3 puts of 1 s and their pauses."""

REPEATED = 100
"""Requests from this number on repeat earlier ones when storage is well again."""

Trouble = Literal["none", "raises", "refuses", "lands, answer lost", "lands, hangs", "hangs", "lands late", "slow"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    at: float
    paths: tuple[str, ...]
    patience_s: float = float("inf")


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    requests: tuple[Request, ...]
    settings: MarkerSettings
    put_s: float = 0.25
    troubles: tuple[Trouble, ...] = ()
    """Of the puts of markers, in the order in which they are sent."""
    deletion_troubles: tuple[Trouble, ...] = ()
    """Of the deletions of merged segments."""
    opening_troubles: tuple[Trouble, ...] = ()
    """Of the puts before the first marker: the claim of the incarnation."""
    seal_at: float | None = None
    roll_back_at: float | None = None
    close_at: float | None = None


TIMES = st.integers(0, 48).map(lambda sixteenths: sixteenths / 16)
LATER = st.one_of(st.none(), st.integers(0, 80).map(lambda sixteenths: sixteenths / 16))
TROUBLES: st.SearchStrategy[Trouble] = st.sampled_from(Trouble.__args__)  # type: ignore[attr-defined]


@st.composite
def scenarios(draw: st.DrawFn) -> Scenario:
    request = st.builds(
        Request,
        at=TIMES,
        paths=st.lists(st.sampled_from(PATHS), min_size=1, max_size=3).map(tuple),
        patience_s=st.one_of(st.just(float("inf")), TIMES),
    )
    marker_settings = st.builds(
        MarkerSettings,
        kind=st.sampled_from(["batched", "direct"]),
        interval_s=st.sampled_from(["auto", 0, 0.125, 0.5]),
        worker_count=st.integers(1, 3),
        queue_limit=st.sampled_from([3, 100]),
        flush_timeout_s=st.just(1.0),
        flush_attempt_count=st.integers(1, 3),
        flush_retry_pause_s=st.sampled_from([0, 0.125]),
        hedge_quantile=st.sampled_from([None, 0.5, 0.95]),
        hedge_ratio_max=st.sampled_from([0.1, 1.0]),
        segment_count_max=st.sampled_from([1, 2, 20]),
        merge_freed_min=st.sampled_from([1, 2]),
        merge_bytes_ratio_max=st.sampled_from([4.0, 50.0]),
        merge_memory_bytes=st.sampled_from([0, 1000]),
    )
    return Scenario(
        requests=draw(st.lists(request, min_size=1, max_size=12).map(tuple)),
        settings=draw(marker_settings),
        put_s=draw(st.sampled_from([0, 0.0625, 0.5])),
        troubles=draw(st.lists(TROUBLES, max_size=8).map(tuple)),
        deletion_troubles=draw(st.lists(TROUBLES, max_size=3).map(tuple)),
        opening_troubles=draw(st.lists(TROUBLES, max_size=3).map(tuple)),
        seal_at=draw(LATER),
        roll_back_at=draw(LATER),
        close_at=draw(LATER),
    )


ONE_WORKER = MarkerSettings(interval_s=0, worker_count=1, flush_timeout_s=1.0, flush_attempt_count=1)
EAGER = MarkerSettings(
    interval_s=0,
    flush_timeout_s=1.0,
    hedge_quantile=0.5,
    segment_count_max=1,
    merge_freed_min=1,
    merge_bytes_ratio_max=50.0,
)
"""Merges nearly all that there is to merge."""

ONE_BY_ONE = tuple(Request(at=number / 2, paths=(path,)) for number, path in enumerate(PATHS))
TWICE = (Request(at=0, paths=PATHS[:1]), Request(at=0.125, paths=PATHS[:1]), Request(at=3, paths=PATHS[:1]))


@given(scenario=scenarios())
@settings(max_examples=examples(250), deadline=None)
@example(scenario=Scenario(requests=TWICE, settings=ONE_WORKER, troubles=("raises",)))
@example(scenario=Scenario(requests=TWICE, settings=ONE_WORKER, troubles=("refuses",)))
@example(scenario=Scenario(requests=TWICE, settings=ONE_WORKER, troubles=("lands, answer lost",)))
@example(scenario=Scenario(requests=TWICE, settings=ONE_WORKER, troubles=("lands, hangs",)))
@example(scenario=Scenario(requests=TWICE, settings=ONE_WORKER, troubles=("lands late",)))
@example(scenario=Scenario(requests=TWICE, settings=ONE_WORKER, troubles=("hangs",), seal_at=0.5))
@example(scenario=Scenario(requests=TWICE, settings=ONE_WORKER, troubles=("hangs",), close_at=0.5))
@example(scenario=Scenario(requests=TWICE, settings=ONE_WORKER, opening_troubles=("hangs",), close_at=0.5))
@example(scenario=Scenario(requests=ONE_BY_ONE, settings=EAGER, troubles=("none",) * 4 + ("lands late",)))
@example(scenario=Scenario(requests=ONE_BY_ONE, settings=EAGER, deletion_troubles=("hangs", "lands, answer lost")))
@example(scenario=Scenario(requests=ONE_BY_ONE, settings=EAGER, close_at=2.75))
def test_whatever_fails_acks_are_durable_and_nobody_is_left_waiting(scenario):
    history = History()
    storage = trio.run(play, scenario, history, clock=trio.testing.MockClock(autojump_threshold=0))
    every_marker_invariant(history, storage)
    every_request_is_answered(history, within_s=60)
    _hold_for_repeats(history)


def _hold_for_repeats(history: History) -> None:
    asked = {event.request for event in history.of(Asked) if event.request >= REPEATED}
    acked = {event.request for event in history.of(Acked)}
    assert asked <= acked, f"refused without need: requests {asked - acked}\n{history!r}"


async def play(scenario: Scenario, history: History) -> dict[str, bytes]:
    """The requesters are no children of the engine: when it closes, it has to answer them."""
    store = RecordedStore(history)
    async with trio.open_nursery() as crowd:
        server = _server(scenario, store, history, crowd)
        log: list[str] = []
        with trio.move_on_after(2 * QUIET_S):
            async with open_marker_engine(server, scenario.settings) as engine:
                directory = engine.directory(INSTANT, check_open=_check_open(log))
                for number, request in enumerate(scenario.requests):
                    crowd.start_soon(_requester, directory, history, number, request)
                if scenario.seal_at is not None:
                    crowd.start_soon(_end, "Sealed", scenario.seal_at, history, directory.seal)
                if scenario.roll_back_at is not None:
                    crowd.start_soon(
                        _end, "RolledBack", scenario.roll_back_at, history, partial(log.append, "by another")
                    )
                if scenario.close_at is None:
                    await _repeat_when_quiet(scenario, directory, history, server)
                    assert engine.statistics().waiting == engine.statistics().inflight == 0
                else:
                    await trio.sleep(scenario.close_at)
                history.record(Ended(at=trio.current_time(), server="server", error="Closed"))
            await trio.sleep(QUIET_S)
        crowd.cancel_scope.cancel()
    return await stored(store)


async def _repeat_when_quiet(scenario, directory, history, server) -> None:
    """Storage is well again: whoever repeats itself is acked, unless the instant is over."""
    await trio.sleep(QUIET_S)
    server.heal()
    if scenario.seal_at is None and scenario.roll_back_at is None:
        for number, request in enumerate(scenario.requests, start=REPEATED):
            await ask(directory, history, *request.paths, request=number)


async def _requester(directory, history, number, request) -> None:
    await trio.sleep(request.at)
    await ask(directory, history, *request.paths, request=number, patience_s=request.patience_s)


async def _end(error, at, history, act) -> None:
    await trio.sleep(at)
    history.record(Ended(at=trio.current_time(), server="server", error=error))
    act()


def _check_open(log: list[str]):
    """What a server asks after a flush: has anybody logged the instant's rollback?"""

    async def check_open() -> None:
        await trio.lowlevel.checkpoint()
        if log:
            raise RolledBack(log[0])

    return check_open


def _server(scenario: Scenario, store: RecordedStore, history: History, crowd: trio.Nursery) -> RecordedServer:
    where = SEGMENTS if scenario.settings.kind == "batched" else DIRECT_MARKERS
    script = [slow("put_new", scenario.put_s, where), slow("delete", scenario.put_s)]
    for nth, trouble in enumerate(scenario.troubles, start=1):
        script += _faults("put_new", trouble, where, nth)
    for nth, trouble in enumerate(scenario.deletion_troubles, start=1):
        script += _faults("delete", trouble, "*", nth)
    for nth, trouble in enumerate(scenario.opening_troubles, start=1):
        script += _faults("put_new", trouble, "*/SERVER*", nth)
    strays = {nth: 2.0 for nth, trouble in enumerate(scenario.troubles, start=1) if trouble == "lands late"}
    return RecordedServer(store, *script, history=history, strays=strays, crowd=crowd, name="server")


def _faults(verb: Verb, trouble: Trouble, where: str, nth: int) -> list[Fault]:
    faults: dict[Trouble, Fault] = {
        "raises": lost_request(verb, where, nth=nth),
        "refuses": refused(verb, where, nth=nth),
        "lands, answer lost": lost_answer(verb, where, nth=nth),
        "lands, hangs": hanging(verb, where, nth=nth, lands=True),
        "hangs": hanging(verb, where, nth=nth),
        "slow": slow(verb, 0.75, where, nth=nth),
    }
    return [faults[trouble]] if trouble in faults else []  # "lands late" is the server's affair
