"""Counts of what happens to jobs, their tasks, and their processes."""

from collections.abc import Callable

from tests.simulation.counts.requests import MARKERS
from tests.simulation.history_index import OPEN, SEAL, HistoryIndex
from tests.simulation.plan import Plan
from tests.simulation.world import LEASE
from tests.table_invariants import file_path


def fell_back(index: HistoryIndex) -> int:
    """Direct markers of jobs that have a service."""
    assert isinstance(index.plan, Plan)
    served = {
        index.instant_of.get(f"writer{number}")
        for number, writer in enumerate(index.plan.writers)
        if writer.kind == "batched"
    }
    return sum(".marker." in path and path.split("/")[2] in served for path in index.landed if path.startswith(MARKERS))


def zombie_fenced(index: HistoryIndex) -> int:
    return 0 if index.plan.has_staging else len(index.publications_refused())


def zombie_without_staging(index: HistoryIndex) -> int:
    return len(index.publications_refused()) if index.plan.has_staging else 0


def zombie_without_marker(index: HistoryIndex) -> int:
    return sum(
        event.error in ("Sealed", "RolledBack") and index.asked[event.request].instant in index.decisions
        for _, event in index.refused
    )


def zombie_landed(index: HistoryIndex) -> int:
    """Files that landed after their instant's rollback had been decided."""
    return sum(
        landed[0][0] > decision.place
        for decision in index.rollbacks
        for path, landed in index.landed.items()
        if path.endswith(f"{decision.entry['instant']}.parquet") and landed[0][1].by == index.begun.get(path)
    )


def instant_given_up(index: HistoryIndex) -> int:
    """Instants that were reserved once more when another writer had committed under them."""
    return sum(
        len({event.by for _, event in events}) > 1 and path.removeprefix(OPEN) in index.decisions
        for path, events in index.landed.items()
        if path.startswith(OPEN)
    )


def unprojected(index: HistoryIndex) -> int:
    """Writers that died with their entry in the log and their commit not yet on the Hudi timeline."""
    return sum(
        index.phase(process, place) == "after its entry" and not _is_projected(index, index.instant_of[process], place)
        for place, process in index.process_events("is killed", who="writer")
    )


def _is_projected(index: HistoryIndex, instant: str, at: int) -> bool:
    return any(index.has_landed(f".hoodie/{instant}.{action}", at) for action in ("commit", "replacecommit"))


def died_during_deletes(index: HistoryIndex) -> int:
    """Writers that had deleted some of what they replaced when they died, and others the rest."""
    count = 0
    for place, process in index.process_events("is killed", who="writer"):
        decision = index.decisions.get(index.instant_of.get(process, ""))
        if decision is not None and decision.place < place and decision.entry["kind"] == "commit":
            removals = [index.removed.get(file_path(file)) for file in decision.entry["removed"]]
            by_itself = [removal[0][1].by == process for removal in removals if removal]
            count += any(by_itself) and not all(by_itself)
    return count


def ended_by_another(kind: str) -> Callable[[HistoryIndex], int]:
    """Commits or rollbacks that one process decided and another one brought to their end."""

    def count(index: HistoryIndex) -> int:
        decisions = index.commits if kind == "commit" else index.rollbacks
        removals = [(one, index.removed.get(OPEN + one.entry["instant"])) for one in decisions]
        return sum(removed[0][1].by != one.by for one, removed in removals if removed)

    return count


def living_ended_by_name(index: HistoryIndex) -> int:
    return sum(
        decision.by.startswith("visitor") and not _has_died(index, decision.entry["instant"], decision.place)
        for decision in index.rollbacks
    )


def _has_died(index: HistoryIndex, instant: str, before: int) -> bool:
    writer = next((writer for writer, its in index.instant_of.items() if its == instant), None)
    return any(process == writer and place < before for place, process in index.process_events("is killed"))


def process_events(what: str, phase: str) -> Callable[[HistoryIndex], int]:
    """Count the writers to which it happened in that phase of their job."""
    return lambda index: sum(
        index.phase(process, place) == phase for place, process in index.process_events(what, who="writer")
    )


def ended_while_rolling_back(what: str) -> Callable[[HistoryIndex], int]:
    """Of any process that is not a task."""
    return lambda index: sum(
        index.phase(process, place) == "in a rollback of another" for place, process in index.process_events(what)
    )


def in_flush(what: str) -> Callable[[HistoryIndex], int]:
    """Count the services to which it happened while a segment was in flight."""
    return lambda index: sum(
        any(
            sent < place and event.server == process and not index.has_landed(event.path, place)
            for sent, event in index.sent
        )
        for place, process in index.process_events(what)
    )


def died_between_put_and_ack(index: HistoryIndex) -> int:
    return sum(
        any(_is_unanswered(index, path, place) for path in index.segments if _was_put_by(index, path, process, place))
        for place, process in index.process_events("is killed")
    )


def _was_put_by(index: HistoryIndex, path: str, process: str, before: int) -> bool:
    return any(event.by == process and place < before for place, event in index.landed[path])


def _is_unanswered(index: HistoryIndex, path: str, at: int) -> bool:
    """Return whether a request for a marker of the segment was waiting then."""
    return any(
        index.answered.get(request, at) >= at
        and any((asked.instant, name) in index.segments[path] for name in asked.names)
        for request, asked in index.asked.items()
    )


def died_between_ack_and_data(index: HistoryIndex) -> int:
    return sum(
        any(
            index.begun.get(path) == process and acked < place and not index.has_landed(path, place)
            for path, acked in index.acked.items()
        )
        for place, process in index.tasks("is killed")
    )


def failed_half_way(index: HistoryIndex) -> int:
    writing = set(index.begun.values())
    return sum(process in writing for _, process in index.tasks("fails: InputFailed()"))


def second_success(index: HistoryIndex) -> int:
    return sum(event.what.startswith("hears of a second success") for _, event in index.notes)


def success_of_the_dead(index: HistoryIndex) -> int:
    return sum(event.what.startswith("hears of the success of") for _, event in index.notes)


def paused_beyond_its_lease(index: HistoryIndex) -> int:
    return len(_long_stops(index))


def paused_and_was_ended(index: HistoryIndex) -> int:
    ended = {event.writer for event in index.told if event.outcome == "RolledBack"}
    return sum(process in ended for process in _long_stops(index))


def _long_stops(index: HistoryIndex) -> list[str]:
    """Writers that had an open instant and stood still for longer than their lease."""
    woken = index.process_events("goes on", who="writer")
    stops = index.process_events("is stopped", who="writer")
    return [
        process
        for stopped, process in stops
        for went_on, woke in woken
        if woke == process
        and index.events[went_on].at - index.events[stopped].at > LEASE.expiry_s
        and index.phase(process, stopped) in ("writing", "before its entry")
    ]


def clock_set_back(index: HistoryIndex) -> int:
    assert isinstance(index.plan, Plan)
    set_back = {
        f"writer{number}"
        for number, writer in enumerate(index.plan.writers)
        if writer.mishap and writer.mishap.what == "clock jumps" and writer.mishap.for_s < 0
    }
    return sum(process in set_back for _, process in index.process_events("'s clock jumps"))


def flag_too_late(index: HistoryIndex) -> int:
    """Count flags of direct markers that landed after the seal of their job."""
    flags = (path for path in index.landed if path.endswith("/DIRECT"))
    return sum(index.has_landed(SEAL + path.split("/")[2], place) for path in flags for place, _ in index.landed[path])
