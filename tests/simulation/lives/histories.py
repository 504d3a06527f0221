"""The history of each life of a table: it starts when the table is removed, or put back to an older copy."""

import re
from dataclasses import dataclass

from tests.history import (
    Acked,
    Asked,
    Began,
    Event,
    Finished,
    GaveUp,
    History,
    Landed,
    Refused,
    Removed,
    Replaced,
    Told,
)
from tests.table_invariants import commits

OPEN = ".hoodie/.tallymark/open/"

OPERATOR = "operator"
"""Who deletes the entries beyond a gap that jobs of the former life have put."""


@dataclass(frozen=True, slots=True)
class Life:
    history: History
    """All events that count in it: those before the copy that it starts with, and its own, without what concerns the
    jobs that outlive the former one."""
    outliving: frozenset[str]
    """Their instants."""
    storage: dict[str, bytes]
    """At its end."""

    def without_remains(self, storage: dict[str, bytes]) -> dict[str, bytes]:
        """Leave out the data files, and lists of fences, of jobs that outlive the former life and do not commit, and
        what they have projected of its commits.
        """
        remains = (
            self.outliving - {entry["instant"] for entry in commits(storage)} if self.outliving else self.outliving
        )
        return {path: data for path, data in storage.items() if not _is_of(path, remains)}


def lives_of(history: History) -> list[Life]:
    """A table that is not replaced has one life. A job that has missed that its log was archived is told the same as
    one that outlives its table, and leaves as much.
    """
    place = next((place for place, event in enumerate(history.events) if isinstance(event, Replaced)), None)
    if place is None:
        missed = frozenset(event.instant or "" for event in history.of(Told) if event.outcome == "TableReplaced")
        return [Life(history, missed, {})]
    replaced = history.events[place]
    assert isinstance(replaced, Replaced)
    shared, before, after = (
        history.events[: replaced.copied],
        history.events[replaced.copied : place],
        history.events[place + 1 :],
    )
    outliving = frozenset(_instants(before) + _instants([event for event in after if _by(event) in replaced.at_work]))
    over = {event.request for event in before + shared if isinstance(event, Asked)}
    over |= {event.request for event in after if isinstance(event, Asked) and event.instant in outliving}
    first = _history(history.events[:place])
    former = {entry["instant"] for entry in commits(_storage(first))} - set(_instants(shared))
    projected = frozenset(_projected(event.path) for event in after if isinstance(event, Landed)) & former
    kept = [event for event in after if not _concerns(event, outliving, over, projected)]
    last = _history(shared + kept)
    return [Life(first, frozenset(), _storage(first)), Life(last, outliving | projected, _storage(last))]


def _by(event: Event) -> str:
    return event.by if isinstance(event, Landed) else ""


def _instants(events: list[Event]) -> list[str]:
    """Those that were reserved, or had markers."""
    reserved = [event.path.removeprefix(OPEN) for event in events if isinstance(event, Landed) and OPEN in event.path]
    return reserved + [event.instant for event in events if isinstance(event, Asked)]


def _projected(path: str) -> str:
    """The instant of a file of the Hudi timeline: a job may project a commit of the former life into the next."""
    found = re.fullmatch(r"\.hoodie/(\d{17})\..*", path)
    return found[1] if found else ""


def _concerns(event: Event, outliving: frozenset[str], over: set[int], projected: frozenset[str]) -> bool:
    match event:
        case Landed():
            return _projected(event.path) in projected
        case Asked() | Acked() | Refused() | GaveUp():
            return event.request in over
        case Began():
            return _is_of(event.path, outliving)
        case Told() | Finished():
            return event.instant in outliving
        case _:
            return False


def _is_of(path: str, instants: frozenset[str]) -> bool:
    if instants and _projected(path) in instants:
        return True
    if path.startswith(".hoodie/.tallymark/fence/"):
        return path.split("/")[3] in instants
    return path.endswith(".parquet") and path[:-8].rpartition("_")[2] in instants


def _history(events: list[Event]) -> History:
    history = History()
    history.events = events
    return history


def _storage(history: History) -> dict[str, bytes]:
    storage: dict[str, bytes] = {}
    for event in history.events:
        if isinstance(event, Landed):
            storage[event.path] = event.data
        elif isinstance(event, Removed):
            storage.pop(event.path, None)
    return storage
