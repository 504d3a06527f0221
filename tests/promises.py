"""The five promises, as functions over what happened and what is stored. They judge tests of every size alike.

A history is needed for what must hold at each moment; bare objects are enough for what must hold in the end. Neither is
read through the library. ``table_invariants`` and ``invariants`` hold what these are made of.
"""

import io
import math
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from typing import Any

import pyarrow.parquet as pq

from tests.history import (
    Acked,
    Asked,
    Based,
    Began,
    Event,
    Finished,
    GaveUp,
    History,
    Landed,
    Loaded,
    Read,
    Refused,
    Removed,
    Told,
)
from tests.invariants import Marker, markers_of
from tests.support.archived import is_archivable
from tests.table_invariants import (
    LOG,
    Storage,
    decisions,
    entry_fields,
    file_path,
    hudi_files,
    is_linked,
    keeps_replaced_files,
    members,
    one_decision_an_instant,
    only_committed_files_exist,
    projection_is_a_prefix_of_the_log,
    table_id,
    timeline_instant,
    whole_entry,
)

SEAL = ".hoodie/.tallymark/seal/"
BEAT = ".hoodie/.tallymark/beat/"
PROPERTIES = ".hoodie/hoodie.properties"

UNCLEAR = ("CommitUnknown",)
"""What a writer is told who may have committed or not."""


class Replay:
    """Storage, and what the log says, as they were at one event of a history after the other."""

    def __init__(self, history: History, unfenced: frozenset[str] = frozenset()) -> None:
        self.unfenced = unfenced
        """Files of rolled-back instants that nothing could fence: once the Hudi timeline is archived beyond their
        instants, its readers see them.
        """
        self.storage: dict[str, bytes] = {}
        self.whole: dict[str, bytes] = {}
        """The same, with what was archived."""
        self.decided: dict[str, str] = {}
        """Instant to the kind of its first entry."""
        self.live: set[str] = set()
        """The files that the log says the table holds."""
        self.states: list[frozenset[str]] = [frozenset()]
        """The same at every position so far."""
        self.within: set[frozenset[str]] = set()
        """What readers may see while the members of a group are projected one by one."""
        self.retained: dict[str, int] = {}
        """Files that were replaced at a position and that no clean has let go, where the table keeps such."""
        self.horizons = [0]
        """At every position so far, up to which one a clean has let go what was replaced."""
        self.empty: set[str] = set()
        """Data files without rows: fences."""
        self._history = history
        self._log: dict[str, bytes] = {}
        self._entries: list[dict[str, Any]] = []

    def events(self) -> Iterator[Event]:
        """Each event, when its effect is there."""
        for event in self._history.events:
            if isinstance(event, Landed) and event.path.startswith(LOG):
                self._take_in(event)
            elif isinstance(event, Landed):
                self.storage[event.path] = self.whole[event.path] = event.data
                if event.path.endswith(".parquet") and not pq.read_metadata(io.BytesIO(event.data)).num_rows:
                    self.empty.add(event.path)
            elif isinstance(event, Removed):
                self.storage.pop(event.path, None)
                if not is_archivable(event.path):
                    del self.whole[event.path]
                if event.path not in self.whole:  # it was beyond a gap
                    self._log.pop(event.path, None)
            yield event

    def _take_in(self, event: Landed) -> None:
        """One beyond a gap is there, and decides, when the log has reached it."""
        self._log[event.path] = event.data
        while (path := f"{LOG}{len(self.states):020d}") in self._log:
            self.storage[path] = self.whole[path] = self._log[path]
            self._entries.append(whole_entry(entry_fields(self.storage[path]), self.storage.__getitem__))
            self._apply(self._entries[-1], self._entries[:-1])

    def _apply(self, entry: dict[str, Any], before: list[dict[str, Any]]) -> None:
        self.horizons.append(self.horizons[-1])
        if is_linked(entry, table_id(self.storage), before):
            partly = {frozenset(self.live)}
            for member in members(entry):
                if member["instant"] not in self.decided:
                    partly |= {_after(seen, member) for seen in partly}
                    self._decide(member)
            self.within |= partly
        self.states.append(frozenset(self.live))

    def _decide(self, entry: dict[str, Any]) -> None:
        self.decided[entry["instant"]] = entry["kind"]
        if entry["kind"] == "commit":
            self._replace({file_path(file) for file in entry["removed"]})
            self.live |= {file_path(file) for file in entry["added"]}
        elif entry["kind"] == "clean":
            self.retained = {path: at for path, at in self.retained.items() if at > entry["horizon"]}
            self.horizons[-1] = max(self.horizons[-1], entry["horizon"])

    def _replace(self, removed: set[str]) -> None:
        self.live -= removed
        if keeps_replaced_files(self.storage):
            self.retained |= dict.fromkeys(removed, len(self.states))


def _after(seen: frozenset[str], entry: Mapping[str, Any]) -> frozenset[str]:
    """The files that a reader sees after the entry of those that it has seen before."""
    gone = {file_path(file) for file in entry["removed"]}
    return (seen - gone) | {file_path(file) for file in entry["added"]}


def durable_first(history: History) -> None:
    """An ack means that the marker is on storage until its instant is decided; no data file is begun without one.

    A writer that has missed that the log was archived, and is told ``TableReplaced``, ends its own instant without a
    decision.
    """
    undecided = {event.instant for event in history.of(Told) if event.outcome == "TableReplaced"}
    asked = {event.request: event for event in history.of(Asked)}
    held: Counter[Marker] = Counter()
    acked: set[Marker] = set()
    replay = Replay(history)
    bytes_of: dict[str, bytes] = {}
    for event in replay.events():
        if isinstance(event, Landed) and "/.temp/" in event.path:
            bytes_of[event.path] = event.data
            held.update(markers_of(event.path, event.data))
        elif isinstance(event, Removed) and event.path in bytes_of:
            gone = list(markers_of(event.path, bytes_of.pop(event.path)))
            held.subtract(gone)
            lost = [marker for marker in gone if marker in acked and not held[marker]]
            is_over = all(instant in replay.decided or instant in undecided for instant, _ in lost)
            _hold(is_over, f"acked and lost: {lost}", event, history)
        elif isinstance(event, Acked):
            request = asked[event.request]
            markers = {(request.instant, name) for name in request.names}
            missing = {marker for marker in markers if not held[marker]}
            is_over = request.instant in replay.decided
            _hold(is_over or not missing, f"acked before it was durable: {missing}", event, history)
            acked |= markers
        elif isinstance(event, Began):
            kinds = (f"{event.path}.marker.CREATE", f"{event.path}.marker.MERGE")
            is_marked = any(name in kinds for _, name in acked)
            _hold(is_marked, "begun before its marker was acked", event, history)


def no_ack_came_too_late(history: History, *, read_after_seal: bool = False, expiry_s: float = math.inf) -> None:
    """Whoever decides an instant and reads its markers then finds every one that was acked, or ever will be.

    With ``read_after_seal`` a rollback reads them when it has put the seal, and may have waited between entry and seal;
    so does one of a writer that has come back since its lease of ``expiry_s`` was over. Where services outside of the
    drivers have claimed the instant by then, the markers are read when these claims are overwritten, or gone.
    """
    asked = {event.request: event for event in history.of(Asked)}
    readings = _Readings()
    beat_at: dict[str, float] = {}
    came_back: set[str] = set()
    replay = Replay(history)
    for event in replay.events():
        if isinstance(event, Landed | Removed) and "/.temp/" in event.path:
            readings.change(event)
        elif isinstance(event, Landed) and event.path.startswith(BEAT):
            instant = event.path.removeprefix(BEAT)
            came_back |= {instant} if event.at - beat_at.get(instant, event.at) > expiry_s else set()
            beat_at[instant] = event.at
        elif isinstance(event, Landed) and event.path.startswith((LOG, SEAL)):
            for instant in replay.decided.keys() - readings.started:
                is_at_once = replay.decided[instant] == "commit" or not (read_after_seal or instant in came_back)
                if is_at_once or event.path == f"{SEAL}{instant}":
                    readings.start(instant)
        elif isinstance(event, Acked):
            request = asked[event.request]
            if (found := readings.found.get(request.instant)) is not None:
                late = {(request.instant, name) for name in request.names} - found
                _hold(not late, f"acked, and durable after the instant was decided: {late}", event, history)


class _Readings:
    """What the process that ends an instant finds of its markers."""

    def __init__(self) -> None:
        self.started: set[str] = set()
        self.found: dict[str, frozenset[Marker]] = {}
        self._landed: set[Marker] = set()
        self._claims: dict[str, set[str]] = {}
        """Of services outside of the drivers."""
        self._awaited: dict[str, set[str]] = {}
        """Those of an instant that ends which still are as they were."""

    def start(self, instant: str) -> None:
        """The instant ends: it is read at once, or when these claims are overwritten."""
        self.started.add(instant)
        self._awaited[instant] = {*self._claims.get(instant, ())}
        self._read(instant)

    def change(self, event: Landed | Removed) -> None:
        """An object of a marker directory is put or deleted."""
        instant = event.path.split("/")[2]
        if isinstance(event, Landed):
            self._landed.update(markers_of(event.path, event.data))
        if "/SERVER" not in event.path:
            return
        if isinstance(event, Landed) and event.data:
            self._claims.setdefault(instant, set()).update([event.path] if event.by.startswith("service") else [])
            return
        self._claims.get(instant, set()).discard(event.path)
        self._awaited.get(instant, set()).discard(event.path)
        self._read(instant)

    def _read(self, instant: str) -> None:
        if instant in self.started - self.found.keys() and not self._awaited[instant]:
            self.found[instant] = frozenset(marker for marker in self._landed if marker[0] == instant)


def every_reading_is_whole(history: History) -> None:
    """Whoever reads the markers of an instant finds all that were acked before, and were there all the while."""
    asked = {event.request: event for event in history.of(Asked)}
    acked: dict[Marker, int] = {}
    """To the number of the event by which it was acked first."""
    there_since: dict[Marker, int] = {}
    """To the number of the event since which some object has held it, without a gap."""
    held: Counter[Marker] = Counter()
    bytes_of: dict[str, bytes] = {}
    for number, event in enumerate(history.events):
        if isinstance(event, Landed) and "/.temp/" in event.path:
            bytes_of[event.path] = event.data
            for marker in markers_of(event.path, event.data):
                there_since |= {} if held[marker] else {marker: number}
                held[marker] += 1
        elif isinstance(event, Removed) and event.path in bytes_of:
            held.subtract(markers_of(event.path, bytes_of.pop(event.path)))
        elif isinstance(event, Acked):
            for name in asked[event.request].names:
                acked.setdefault((asked[event.request].instant, name), number)
        elif isinstance(event, Loaded):
            due = {
                name
                for (instant, name), since in acked.items()
                if instant == event.instant
                and held[instant, name]
                and max(since, there_since[instant, name]) < event.events_before
            }
            _hold(not due - event.names, f"missed: {sorted(due - event.names)}", event, history)


def all_or_nothing(history: History, unfenced: frozenset[str] = frozenset()) -> None:
    """One put decides. Every reader sees the table as of a position, whole, and never goes back."""
    replay = Replay(history, unfenced)
    for event in replay.events():
        if isinstance(event, Landed) and timeline_instant(event.path):
            _told(projection_is_a_prefix_of_the_log, replay.whole, event, history)
            _sees_whole_commits(replay, event, history)
        elif isinstance(event, Removed) and event.path.startswith(LOG):
            earlier = [path for path in replay.storage if path.startswith(LOG) and path < event.path]
            _hold(
                not earlier or event.path not in replay.whole,
                "an entry of the log is gone before an older one",
                event,
                history,
            )
        elif isinstance(event, Removed) and timeline_instant(event.path):
            _sees_whole_commits(replay, event, history)
        elif isinstance(event, Removed):
            _hold(event.path != PROPERTIES, "the table's properties are gone", event, history)
        elif isinstance(event, Read):
            head = len(replay.states) - 1
            _hold(
                event.head_before <= event.position <= head,
                f"not between {event.head_before} and {head}",
                event,
                history,
            )
            seen = replay.states[event.position]
            _hold(set(event.files) == seen, f"not what was committed: {set(event.files) ^ seen}", event, history)
    _told(one_decision_an_instant, replay.whole, None, history)


def writers_learn_the_truth(history: History, storage: Storage) -> None:
    """Who was told of a commit has committed; who was told of an end has not."""
    decided = decisions(storage)
    for event in history.of(Told):
        entry = decided.get(event.instant or "")
        kind = None if entry is None else entry["kind"]
        if event.outcome == "committed":
            _hold(kind == "commit", f"the log says {kind}", event, history)
        elif event.outcome not in UNCLEAR:
            _hold(kind != "commit", "the log says it was committed", event, history)


def writers_go_by_what_they_have_read(history: History, storage: Storage) -> None:
    """The base of a commit is the position that its caller gave."""
    decided = decisions(storage)
    for event in history.of(Based):
        entry = decided.get(event.instant)
        if entry is not None and entry["kind"] == "commit":
            _hold(entry["base"] == event.position, f"the log says position {entry['base']}", event, history)


def committed_is_visible(history: History, writers: Collection[str]) -> None:
    """When the blocks of these writers end after a commit, readers of the Hudi format see it."""
    replay = Replay(history)
    for event in replay.events():
        if isinstance(event, Finished) and event.writer in writers:
            visible = {timeline_instant(path) for path in replay.whole}
            _hold(event.instant in visible, "not projected yet", event, history)


def nothing_left(storage: Storage) -> None:
    """Every data file belongs to a committed entry, or is a logged fence."""
    only_committed_files_exist(storage)


def nothing_lost(history: History, unfenced: frozenset[str] = frozenset()) -> None:
    """A committed file goes when a later committed entry has replaced it, for all readers, and not before.

    Where the table keeps replaced files, it goes when a clean has let it go.
    """
    replay = Replay(history, unfenced)
    for event in replay.events():
        if isinstance(event, Removed) and event.path.endswith(".parquet"):
            _hold(event.path not in replay.live, "a committed file is gone", event, history)
            _hold(event.path not in replay.retained, "a file is gone that was to be kept", event, history)
            _sees_whole_commits(replay, event, history)
        elif isinstance(event, Landed) and event.path.startswith(LOG):
            missing = replay.live - replay.storage.keys()
            _hold(not missing, f"committed, and not there: {missing}", event, history)


def bounded(history: History, *, within_s: float, dead: set[str]) -> None:
    """Every request is answered, once, in time; those of processes that died or were stopped have nobody to hear it."""
    ends = Counter(event.request for event in history.events if isinstance(event, Acked | Refused | GaveUp))
    asked = {event.request: event for event in history.of(Asked)}
    for request, event in asked.items():
        if event.server not in dead:
            _hold(ends[request] == 1, f"answered {ends[request]} times", event, history)
    for end in history.events:
        if isinstance(end, Acked | Refused | GaveUp) and asked[end.request].server not in dead:
            waited_s = end.at - asked[end.request].at
            _hold(waited_s <= within_s, f"answered after {waited_s} s", end, history)


def _sees_whole_commits(replay: Replay, event: Event, history: History) -> None:
    """What a reader of the Hudi format sees is the table as of some position."""
    seen = hudi_files(replay.storage) - replay.empty - replay.unfenced
    _hold(
        seen in replay.within or seen in replay.states,
        f"its readers see a state that never was: {sorted(seen)}",
        event,
        history,
    )


def _told(check: Any, storage: Mapping[str, bytes], event: Event | None, history: History) -> None:
    try:
        check(storage)
    except AssertionError as error:
        _hold(False, str(error), event, history)


def _hold(holds: bool, otherwise: str, event: Event | None, history: History) -> None:
    if not holds:
        where = f"{event.at:.4f} {event}: " if event else ""
        raise AssertionError(f"{where}{otherwise}\n{history!r}")
