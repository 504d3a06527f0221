"""Counts of commits that are decided together, and of streams."""

from collections import Counter
from collections.abc import Callable

from tests.simulation.history_index import Decision, HistoryIndex
from tests.simulation.plan import Plan
from tests.table_invariants import LOG


def _groups(index: HistoryIndex) -> dict[int, Decision]:
    """The first member of each group, by its position."""
    count = Counter(decision.position for decision in index.commits)
    return {one.position: one for one in reversed(index.commits) if count[one.position] > 1}


def shared_entries(index: HistoryIndex) -> int:
    return len(_groups(index))


def unclear(index: HistoryIndex) -> int:
    """Puts of groups that landed, and were not answered."""
    groups = {f"{LOG}{position:020d}": decision.by for position, decision in _groups(index).items()}
    return sum(
        groups.get(event.path) == event.by and event.what in ("lost answer", "late landing") for event in index.strayed
    )


def one_ended(index: HistoryIndex) -> int:
    """Rollbacks by others of an instant of a driver which has put a group after that."""
    assert isinstance(index.plan, Plan)
    jobs = [f"writer{number}" for number, writer in enumerate(index.plan.writers) if writer.driver]
    instants = {index.instant_of.get(job) for job in jobs}
    groups = [one for one in _groups(index).values() if one.by in jobs]
    return sum(
        rollback.entry["instant"] in instants
        and rollback.by not in jobs
        and any(group.position > rollback.position for group in groups)
        for rollback in index.rollbacks
    )


def stream_happened(what: str) -> Callable[[HistoryIndex], int]:
    """Count the drivers of streams to which it happened."""
    return lambda index: len(index.process_events(what, who="stream"))
