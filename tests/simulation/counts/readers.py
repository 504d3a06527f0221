"""Counts of readers under leases, of views, and of what happens to them and their files."""

from collections.abc import Iterator
from dataclasses import dataclass

from tallymark.engine.views.checkpoint_format import CHECKPOINT_FOLDER, POINTER
from tests.history import Befell, Held, Landed, Released, TurnedAway, Viewed
from tests.simulation.history_index import Decision, HistoryIndex
from tests.table_invariants import LOG, file_path


@dataclass(frozen=True, slots=True)
class Hold:
    """A reading under a lease, from one place in the history to another."""

    event: Held
    begun: int
    ended: int

    def lasts_at(self, place: int) -> bool:
        return self.begun < place < self.ended


def outlasted(index: HistoryIndex) -> int:
    """Readings of which some file was replaced before they ended."""
    return sum(any(hold.lasts_at(one.place) for one in _replacing(index, hold)) for hold in _holds(index))


def leased_older(index: HistoryIndex) -> int:
    """Readings of a position some file of which had been replaced when they began."""
    return sum(any(one.place < hold.begun for one in _replacing(index, hold)) for hold in _holds(index))


def clean_beside(index: HistoryIndex) -> int:
    """Cleans that went only so far as a reader allowed, or won while what it held had been replaced."""
    holds = [(hold, _replacing(index, hold)) for hold in _holds(index)]
    return sum(
        any(hold.lasts_at(clean.place) and any(one.place < clean.place for one in by) for hold, by in holds)
        for clean in index.cleans
    )


def reader_died(index: HistoryIndex) -> int:
    return sum(
        hold.lasts_at(place) and process == hold.event.reader
        for hold in _holds(index)
        for place, process in index.process_events("is killed")
    )


def _replacing(index: HistoryIndex, hold: Hold) -> list[Decision]:
    """The commits that replaced some of its files."""
    files = set(hold.event.files)
    return [one for one in index.commits if files & {file_path(file) for file in one.entry["removed"]}]


def _holds(index: HistoryIndex) -> Iterator[Hold]:
    begun: dict[str, tuple[int, Held]] = {}
    for place, event in enumerate(index.events):
        match event:
            case Held():
                begun[event.reader] = (place, event)
            case Released() if event.reader in begun:
                first, held = begun.pop(event.reader)
                yield Hold(held, first, place)
            case Befell() if event.what == "is killed" and event.process in begun:
                first, held = begun.pop(event.process)
                yield Hold(held, first, place + 1)
            case _:
                pass


def answered_behind(index: HistoryIndex) -> int:
    """Answers of a view that had not read the whole log."""
    return sum(event.head < entries for entries, event in _answers(index))


def answered_older(index: HistoryIndex) -> int:
    """Count answers for a position after which, as the view knew, files of the partition had changed."""
    return sum(
        _files_in_partition(index, event, event.position) != _files_in_partition(index, event, event.head)
        for _, event in _answers(index)
    )


def turned_away(index: HistoryIndex) -> int:
    return sum(isinstance(event, TurnedAway) for event in index.events)


def viewer_paused(index: HistoryIndex) -> int:
    return len(index.process_events("is stopped", who="viewer"))


def checkpoint(index: HistoryIndex) -> int:
    """Pointers to a checkpoint that is whole."""
    return len(index.landed.get(POINTER, ()))


def died_during_a_checkpoint(index: HistoryIndex) -> int:
    """Writers whose parts or manifest are there, and no pointer that names them."""
    return sum(
        _newest_of_checkpoints(index, process, place) not in (None, POINTER)
        for place, process in index.process_events("is killed")
    )


def _newest_of_checkpoints(index: HistoryIndex, process: str, before: int) -> str | None:
    """The path of what the process had put last by then among checkpoints."""
    put = [
        (place, path)
        for path, landings in index.landed.items()
        if path.startswith(CHECKPOINT_FOLDER)
        for place, event in landings
        if event.by == process and place < before
    ]
    return max(put, default=(0, None))[1]


def _answers(index: HistoryIndex) -> Iterator[tuple[int, Viewed]]:
    """Each, and how many entries the log had in that moment."""
    entries = 0
    for event in index.events:
        if isinstance(event, Landed) and event.path.startswith(LOG):
            entries += 1
        elif isinstance(event, Viewed):
            yield entries, event


def _files_in_partition(index: HistoryIndex, event: Viewed, position: int) -> set[str]:
    return {file_path(file) for file in index.files_at(position) if file[0] == event.partition}
