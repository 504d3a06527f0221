"""Counts of appends that fill small files, of those that lose one, and of what happens to both.

Each function counts one failure in the history of a run.
"""

from collections.abc import Callable

from tests.simulation.history_index import Decision, HistoryIndex
from tests.table_invariants import file_path


def fill(index: HistoryIndex) -> int:
    return sum(len(one.entry["removed"]) for one in index.commits if one.entry["operation"] == "append")


def lost_to(operation: str) -> Callable[[HistoryIndex], int]:
    """Count lost fills that were rewritten and committed after a commit of that kind had replaced a file there."""

    def count(index: HistoryIndex) -> int:
        lost = 0
        for decision in index.commits:
            rivals = [one for one in _between(index, decision) if one.entry["operation"] == operation]
            replaced = {file[0] for one in rivals for file in one.entry["removed"]}
            cut = _rewritten(index, decision.by, len(index.events)) & {
                file_path(file) for file in decision.entry["added"]
            }
            lost += sum(path.rpartition("/")[0] in replaced for path in cut)
        return lost

    return count


def _between(index: HistoryIndex, decision: Decision) -> list[Decision]:
    """What was committed since it began."""
    return [one for one in index.commits if decision.entry["base"] < one.position < decision.position]


def _rewritten(index: HistoryIndex, process: str, before: int, *, ending: str = "") -> set[str]:
    """What a driver itself, or a task, had marked by then."""
    return {
        name.partition(".marker.")[0]
        for place, asked in index.asked_at
        if place < before and asked.server == process
        for name in asked.names
        if name.endswith(ending)
    }


def happened_while_rewriting(what: str) -> Callable[[HistoryIndex], int]:
    """Count the writers to which it happened between the first marker of a rewritten fill and their instant's end."""
    return lambda index: sum(
        bool(_rewritten(index, process, place)) and index.phase(process, place) == "before its entry"
        for place, process in index.process_events(what)
    )


def ended_while_rewriting(index: HistoryIndex) -> int:
    """Count the writers that another rolled back after they had marked a rewritten fill."""
    writer_of = {instant: writer for writer, instant in index.instant_of.items()}
    return sum(
        bool(_rewritten(index, writer_of[one.entry["instant"]], one.place))
        for one in index.rollbacks
        if one.entry["instant"] in writer_of and one.by != writer_of[one.entry["instant"]]
    )


def unclear_while_rewriting(index: HistoryIndex) -> int:
    return sum(
        event.verb == "data" and "/" not in event.by and event.what in ("lost answer", "late landing", "lost request")
        for event in index.strayed
    )


def overwrite_lost_to_a_fill(index: HistoryIndex) -> int:
    """Overwrites that are refused since an append has filled what they replace."""
    appends = [one.entry["instant"] for one in index.commits if one.entry["operation"] == "append"]
    return sum(
        event.outcome == "ConflictError" and any(f" {instant} " in event.message for instant in appends)
        for event in index.told
    )


def died_with_old_rows(index: HistoryIndex) -> int:
    """Tasks that died between the marker for a small file's rows and the file that was to hold them."""
    return sum(
        any(path not in index.landed for path in _merges(index, process, place))
        for place, process in index.tasks("is killed")
    )


def zombie_with_old_rows(index: HistoryIndex) -> int:
    """Tasks that fill, and found their way closed, or brought their file to it after their instant was decided."""
    late = {
        events[0][1].by: place
        for path, events in index.landed.items()
        if (decision := index.decisions.get(path[:-8].rpartition("_")[2])) is not None
        and (place := events[0][0]) > decision.place
        and events[0][1].by == index.begun.get(path)
    }
    return sum(
        bool(_merges(index, process, place))
        for process, place in (index.publications_refused() | late).items()
        if "/" in process
    )


def _merges(index: HistoryIndex, process: str, before: int) -> set[str]:
    """The files of old rows and new ones that a task had marked by then."""
    return _rewritten(index, process, before, ending=".MERGE")
