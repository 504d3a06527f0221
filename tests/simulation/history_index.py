"""Index over a run's history, built once, for the counts of failures."""

from collections import defaultdict
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from tests.history import Acked, Asked, Befell, Began, Event, GaveUp, Landed, Refused, Removed, Sent, Strayed, Told
from tests.invariants import markers_of
from tests.simulation.markers.marker_world import MarkerOutcome
from tests.simulation.world import Outcome
from tests.table_invariants import LOG, decisions, entry_fields, file_path, members, whole_entry

OPEN = ".hoodie/.tallymark/open/"
SEAL = ".hoodie/.tallymark/seal/"


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """The first entry of an instant."""

    place: int
    """In the history."""
    position: int
    """In the log."""
    by: str
    entry: dict[str, Any]


class HistoryIndex:
    """Places are those of events in the history: what has the lower one was earlier."""

    def __init__(self, outcome: Outcome | MarkerOutcome) -> None:
        self.plan = outcome.plan
        self.counts = outcome.occurred
        self.whole = outcome.history
        self.lives = outcome.lives if isinstance(outcome, Outcome) else []
        self.swept = outcome.swept if isinstance(outcome, Outcome) else {}
        self.events = self.lives[-1].history.events if self.lives else outcome.history.events
        """Where a table was replaced, those of its last life."""
        found: dict[type[Event], list[tuple[int, Any]]] = defaultdict(list)
        for place, event in enumerate(self.events):
            found[type(event)].append((place, event))
        self.notes: list[tuple[int, Befell]] = found[Befell]
        self.strayed: list[Strayed] = [event for _, event in found[Strayed]]
        self.told: list[Told] = [event for _, event in found[Told]]
        self.refused: list[tuple[int, Refused]] = found[Refused]
        self.asked_at: list[tuple[int, Asked]] = found[Asked]
        self.asked: dict[int, Asked] = {asked.request: asked for _, asked in self.asked_at}
        gave_up = [(place, self.asked[event.request]) for place, event in found[GaveUp]]
        self.gave_up = [(place, asked.instant, asked.names) for place, asked in gave_up]
        """Where, and which markers of which instant."""
        self.answered = {event.request: place for place, event in found[Acked] + found[Refused]}
        """Request to the place of its answer."""
        acked = [(place, name) for place, event in found[Acked] for name in self.asked[event.request].names]
        self.acked = {name.partition(".marker.")[0]: place for place, name in acked}
        """Path of a data file to the place of its marker's ack."""
        self.begun: dict[str, str] = {event.path: event.by for _, event in found[Began]}
        """Path of a data file to the process that has started it."""
        self.sent: list[tuple[int, Sent]] = found[Sent]
        self.landed: dict[str, list[tuple[int, Landed]]] = _by_path(found[Landed])
        self.removed: dict[str, list[tuple[int, Removed]]] = _by_path(found[Removed])
        reserved = (note for _, note in self.notes if note.what.startswith("has instant "))
        self.instant_of = {note.process: note.what.rpartition(" ")[2] for note in reserved}
        """Writer to its instant."""

    @cached_property
    def decisions(self) -> dict[str, Decision]:
        own = None if len(self.lives) < 2 else {entry["nonce"] for entry in decisions(self.swept).values()}
        decided: dict[str, Decision] = {}
        for path, [(place, event), *_] in sorted(self.landed.items()):
            if path.startswith(LOG):
                entry = whole_entry(entry_fields(event.data), lambda body: self.landed[body][0][1].data)
                position = int(path.removeprefix(LOG))
                for member in members(entry):
                    if own is None or member["nonce"] in own:
                        new = Decision(place=place, position=position, by=event.by, entry=member)
                        decided.setdefault(member["instant"], new)
        return decided

    @cached_property
    def commits(self) -> list[Decision]:
        return [decision for decision in self.decisions.values() if decision.entry["kind"] == "commit"]

    @cached_property
    def rollbacks(self) -> list[Decision]:
        return [decision for decision in self.decisions.values() if decision.entry["kind"] == "rollback"]

    @cached_property
    def cleans(self) -> list[Decision]:
        return [decision for decision in self.decisions.values() if decision.entry["kind"] == "clean"]

    def process_events(self, what: str, *, who: str = "") -> list[tuple[int, str]]:
        """Return place and process of each such event. ``who`` is a prefix of names; tasks only if it has a slash."""
        return [
            (place, event.process)
            for place, event in self.notes
            if event.what == what and event.process.startswith(who) and ("/" in event.process) == ("/" in who)
        ]

    def tasks(self, what: str) -> list[tuple[int, str]]:
        return [(place, event.process) for place, event in self.notes if event.what == what and "/" in event.process]

    def publications_refused(self) -> dict[str, int]:
        """Return the tasks whose file was refused, since their job was over, and the place of that refusal.

        The refusal of a marker is ``Sealed``, too, but only the refusal of a publication names the file.
        """
        return {
            event.process: place
            for place, event in self.notes
            if "/" in event.process and event.what.startswith("fails: Sealed(") and ".parquet" in event.what
        }

    def has_landed(self, path: str, before: int) -> bool:
        return path in self.landed and self.landed[path][0][0] < before

    def is_removed(self, path: str, before: int) -> bool:
        return path in self.removed and self.removed[path][0][0] < before

    def is_open(self, instant: str, at: int) -> bool:
        """Whether the instant is reserved then."""
        return self.has_landed(OPEN + instant, at) and not self.is_removed(OPEN + instant, at)

    def phase(self, process: str, at: int) -> str:
        """Return the phase of a process at that place, as far as storage shows it."""
        if any(one.by == process and one.place < at and self._is_foreign(one, process, at) for one in self.rollbacks):
            return "in a rollback of another"
        instant = self.instant_of.get(process)
        noted = {event.what for place, event in self.notes if place < at and event.process == process}
        if instant is None or f"has instant {instant}" not in noted:
            return "beginning"
        decision = self.decisions.get(instant)
        if decision is None or decision.place > at:
            return "before its entry" if "commits" in noted else "writing"
        if not self.is_open(instant, at):
            return "over"
        return "after its entry" if decision.entry["kind"] == "commit" else "in its rollback"

    def _is_foreign(self, rollback: Decision, process: str, at: int) -> bool:
        instant = rollback.entry["instant"]
        return instant != self.instant_of.get(process) and self.is_open(instant, at)

    @cached_property
    def segments(self) -> dict[str, set[tuple[str, str]]]:
        """The markers of each segment that has landed."""
        return {
            path: set(markers_of(path, events[0][1].data)) for path, events in self.landed.items() if "/MARKERS" in path
        }

    def files_at(self, position: int) -> list[Any]:
        """The files of the table at a position of the log."""
        live: dict[str, Any] = {}
        for decision in sorted(self.commits, key=lambda one: one.position):
            if decision.position <= position:
                for file in decision.entry["removed"]:
                    live.pop(file_path(file), None)
                live |= {file_path(file): file for file in decision.entry["added"]}
        return list(live.values())


def _by_path(events: list[tuple[int, Any]]) -> dict[str, list[tuple[int, Any]]]:
    found: dict[str, list[tuple[int, Any]]] = {}
    for place, event in events:
        found.setdefault(event.path, []).append((place, event))
    return found
