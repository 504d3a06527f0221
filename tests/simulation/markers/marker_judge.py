"""What must hold of a run without a table: the promises that are about markers, and that nothing is stuck."""

from collections.abc import Callable

from tallymark.engine.markers.segment import TYPE_FILE
from tests.history import Acked, Asked, Ended, Event, GaveUp, History, Landed, Refused, Removed, Sent
from tests.invariants import (
    created_at_most_once,
    every_ack_is_durable,
    markers_in,
    no_ack_after_the_end,
    refused_requests_were_not_acked,
    segment_numbers_are_unique,
)
from tests.promises import bounded, durable_first, every_reading_is_whole, no_ack_came_too_late
from tests.simulation.markers.marker_plan import INSTANTS, MarkerPlan
from tests.simulation.markers.marker_world import MarkerOutcome
from tests.table_invariants import decisions

FAULTS = ("InvalidRequest", "CorruptObject", "NotAuthenticated")
"""Errors that no process in a simulation may get."""

GIVEN_UP_S = 30.0
"""``MarkerSettings.flush_timeout_s`` where it is as usual: what takes longer is given up, and may land all the same."""

SEGMENTS_MAX = 16
"""More than the 4 that plans with merges allow: what the fourth root of some hundred flushes adds (decision 0008)."""


def judge_markers(outcome: MarkerOutcome) -> None:
    """Raises AssertionError with the history of the run, if a promise was broken."""
    history = outcome.history
    durable_first(history)
    no_ack_came_too_late(history)
    every_reading_is_whole(history)
    segment_numbers_are_unique(_before_deletions(history))
    bounded(history, within_s=_patience_s(outcome.plan), dead=_disturbed(outcome))
    at_servers = _requests(history, lambda asked: "/" in asked.server)
    created_at_most_once(at_servers)
    refused_requests_were_not_acked(_without_rollbacks(at_servers))
    no_ack_after_the_end(at_servers)
    every_ack_is_durable(_undecided(outcome), outcome.at_rest)
    for check in (
        no_request_fails_without_cause,
        nothing_is_stuck,
        nothing_is_left,
        nothing_follows_a_deletion,
        few_segments_remain,
    ):
        try:
            check(outcome)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{history!r}") from error


def no_request_fails_without_cause(outcome: MarkerOutcome) -> None:
    """No request fails by a fault of ours, or by an end that had not happened. Without faults no request is refused."""
    decided = decisions(outcome.at_rest)
    asked = {event.request: event for event in outcome.history.of(Asked)}
    ends = {event.error for event in outcome.history.of(Ended)}
    for event in outcome.history.of(Refused):
        assert event.error not in FAULTS, event
        if event.error == "RolledBack":
            assert asked[event.request].instant in decided, event
        elif event.error in ("Sealed", "Closed"):
            assert event.error in ends, event
        elif asked[event.request].instant not in decided:
            assert not _is_peaceful(outcome.plan), event


def nothing_is_stuck(outcome: MarkerOutcome) -> None:
    """When nothing is wrong any more, a server that lives acks, or says that there is nothing more to ack."""
    for probe in outcome.probes:
        assert probe.answer != "nothing" if probe.is_over else probe.answer == "acked", probe


def nothing_is_left(outcome: MarkerOutcome) -> None:
    """Nothing remains after the deletion of an instant that no process uses any more."""
    left = [path for path in outcome.deleted if path.startswith(".hoodie/.temp/")]
    assert not left, f"not deleted: {left}"
    assert not markers_in(outcome.deleted)


def nothing_follows_a_deletion(outcome: MarkerOutcome) -> None:
    """A server has waited for what it still had in flight. (What it gave up, as its first put when it is sealed before
    it has started, or another server sent, may land.)
    """
    plan, faults = outcome.plan, outcome.plan.faults
    is_long = faults.late or faults.outage or (faults.tail and faults.tail_s >= GIVEN_UP_S)
    if is_long or not _is_wide(plan):
        return
    for server, instant, number in outcome.deletions:
        acts = [act.what for each in plan.servers for act in each.acts]
        if server in outcome.disturbed or "forget" in acts or "close" in acts:
            continue
        for event in outcome.history.events[number:]:
            follows = isinstance(event, Landed) and event.by == server and f"/{instant}/" in event.path
            is_given_up = isinstance(event, Landed) and _is_of_a_start(event.path)
            assert not follows or is_given_up, f"{server} had deleted the directory: {event}"


def few_segments_remain(outcome: MarkerOutcome) -> None:
    """One undisturbed server leaves as few segments as its settings allow."""
    plan = outcome.plan
    [server, *others] = plan.servers
    is_calm = plan.faults.is_storage_reliable and _is_wide(plan)
    if others or server.mishap or server.acts or not is_calm or server.settings.merge_bytes_ratio_max < 4:
        return
    limit = max(server.settings.segment_count_max, SEGMENTS_MAX)
    for instant in INSTANTS:
        segments = [path for path in outcome.at_rest if f"/{instant}/MARKERS" in path and not path.endswith(".type")]
        assert len(segments) <= limit, f"{len(segments)} segments are left: {segments}"


def _patience_s(plan: MarkerPlan) -> float:
    """A request waits for a load of some pages, a claim, a flush before its own and its own, and reads the log."""
    settings = [server.settings for server in plan.servers]
    flush_s = max(each.flush_attempt_count * (each.flush_timeout_s + each.flush_retry_pause_s * 4) for each in settings)
    faults = plan.faults
    return 60.0 + 8 * flush_s + 20 * faults.tail_s


def _disturbed(outcome: MarkerOutcome) -> set[str]:
    """Return the names under which disturbed processes were requested, or sent requests."""
    return {
        event.server
        for event in outcome.history.of(Asked)
        if event.server.partition(".")[0] in outcome.disturbed or event.server in outcome.disturbed
    }


def _is_peaceful(plan: MarkerPlan) -> bool:
    faults = plan.faults
    is_calm = faults.is_storage_reliable and not faults.reset and not faults.unreachable
    mishaps = [part.mishap for parts in (plan.servers, plan.clients, plan.visitors) for part in parts]
    acts = [act for server in plan.servers for act in server.acts]
    is_patient = all(client.wait_s >= 20 for client in plan.clients)
    return is_calm and is_patient and _is_wide(plan) and not acts and not any(mishaps)


def _is_wide(plan: MarkerPlan) -> bool:
    """No limit of the servers is reached where storage is as usual."""
    return all(
        server.settings.queue_limit >= 1000 and server.settings.flush_timeout_s >= GIVEN_UP_S for server in plan.servers
    )


def _without_rollbacks(history: History) -> History:
    """A server learns of a rollback from the log, and has no end of its own: that the log says so is judged apart."""
    chosen = History()
    chosen.events = [
        event for event in history.events if not (isinstance(event, Refused) and event.error == "RolledBack")
    ]
    return chosen


def _is_of_a_start(path: str) -> bool:
    name = path.rpartition("/")[2]
    return name == TYPE_FILE or name.startswith("SERVER")


def _before_deletions(history: History) -> History:
    """Leave out deleted directories: with them the claims of their numbers are deleted, and no number counts."""
    chosen, over = History(), set()
    for event in history.events:
        if isinstance(event, Removed) and "/SERVER" in event.path:
            over.add(event.path.rpartition("/")[0])
        if not (isinstance(event, Sent) and event.path.rpartition("/")[0] in over):
            chosen.record(event)
    return chosen


def _requests(history: History, wanted: Callable[[Asked], bool]) -> History:
    """The history of some requests only."""
    chosen = History()
    requests = {event.request for event in history.of(Asked) if wanted(event)}
    chosen.events = [event for event in history.events if _request(event) is None or _request(event) in requests]
    return chosen


def _request(event: Event) -> int | None:
    return event.request if isinstance(event, Asked | Acked | Refused | GaveUp) else None


def _undecided(outcome: MarkerOutcome) -> History:
    """What concerns the instants that were kept to the end."""
    kept = set(INSTANTS) - decisions(outcome.at_rest).keys()
    return _requests(outcome.history, lambda asked: asked.instant in kept)
