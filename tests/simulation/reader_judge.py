"""Checks of readers: under a lease they find their files, and a view answers for the position that was requested."""

import re

from tests.history import Befell, Event, Held, History, Landed, Released, Removed, Synced, TurnedAway, Viewed
from tests.promises import Replay

READ = ".hoodie/.tallymark/read/"


def readers_under_leases_find_their_files(history: History, *, expiry_s: float) -> None:
    """A reader's snapshot is that of its position, and none of its files goes while its lease is kept.

    Kept is a lease of a process that lives and has renewed it, each time within its expiry, by the store's clock.
    """
    leases = _Leases(expiry_s)
    held: dict[str, Held] = {}
    replay = Replay(history)
    for event in replay.events():
        match event:
            case Landed():
                leases.landed(event)
            case Held():
                _check(set(event.files) == replay.states[event.position], "not what was committed", event, history)
                gone = set(event.files) - replay.storage.keys()
                _check(not gone or not leases.is_kept(event.reader, event.at), f"not there: {gone}", event, history)
                held[event.reader] = event
            case Released():
                held.pop(event.reader, None)
            case Befell() if event.what == "is killed":
                held.pop(event.process, None)
            case Removed():
                losers = {reader for reader, found in held.items() if event.path in found.files}
                losers = {reader for reader in losers if leases.is_kept(reader, event.at)}
                _check(not losers, f"gone, and held by {losers}", event, history)


class _Leases:
    """Times at which each lease was renewed, as storage recorded them."""

    def __init__(self, expiry_s: float) -> None:
        self._expiry_s = expiry_s
        self._newest: dict[str, str] = {}
        """Of each reader the lease that it has put last for the first time."""
        self._renewed: dict[str, float] = {}
        self._lapsed: set[str] = set()

    def landed(self, event: Landed) -> None:
        path = event.path
        if path.startswith(READ):
            if path not in self._renewed:
                self._newest[event.by] = path
            elif event.at - self._renewed[path] > self._expiry_s:
                self._lapsed.add(path)
            self._renewed[path] = event.at

    def is_kept(self, reader: str, at: float) -> bool:
        lease = self._newest[reader]
        return lease not in self._lapsed and at - self._renewed[lease] <= self._expiry_s


def _check(holds: bool, otherwise: str, event: Event, history: History) -> None:
    if not holds:
        raise AssertionError(f"{event.at:.4f} {event}: {otherwise}\n{history!r}")


def a_view_is_never_newer_than_its_reader(history: History) -> None:
    """An answer contains nothing that was added after the requested position, or was never committed."""
    replay = Replay(history)
    for event in replay.events():
        if isinstance(event, Viewed):
            newer = set(event.files) - _files_at(replay, event)
            _check(not newer, f"not there at its position: {newer}", event, history)


def never_misses_a_committed_file(history: History) -> None:
    """An answer contains all files of its position; a process that has read the log knows all earlier entries."""
    replay = Replay(history)
    for event in replay.events():
        if isinstance(event, Viewed):
            held = _files_at(replay, event)
            missed = held - set(event.files)
            _check(not missed, f"there at its position: {missed}", event, history)
            _check(event.is_named == bool(held), f"partitions tell otherwise: {event.is_named}", event, history)
        elif isinstance(event, Synced):
            head = len(replay.states) - 1
            is_between = event.head_before <= event.position <= head
            _check(is_between, f"not between {event.head_before} and {head}", event, history)


MANIFEST = re.compile(r"\.hoodie/\.tallymark/checkpoint/\d{20}-[0-9a-f]{32}")


def never_serves_a_deleted_file(history: History) -> None:
    """At a position that is retained every file of an answer is there in the moment of the answer."""
    replay = Replay(history)
    for event in replay.events():
        if isinstance(event, Viewed) and _is_retained(replay, event.position):
            gone = set(event.files) - replay.storage.keys()
            _check(not gone, f"not there: {gone}", event, history)


def answers_exactly_what_is_retained(history: History) -> None:
    """Nobody is turned away but for a position after which a clean has let something go; and who has read the entry of
    that clean is answered for none of these.
    """
    replay = Replay(history)
    for event in replay.events():
        if isinstance(event, TurnedAway):
            since = max(_retained_since(replay, len(replay.states) - 1), _archived_before(replay))
            _check(event.position < since, f"turned away, and retained is all since {since}", event, history)
        elif isinstance(event, Viewed):
            since = _retained_since(replay, event.head)
            _check(event.position >= since, f"answered, and retained is what there is since {since}", event, history)


def _retained_since(replay: Replay, head: int) -> int:
    """The last position up to the horizon, as the log says it up to its ``head``, at which something was replaced."""
    replaced = (at for at in range(replay.horizons[head], 0, -1) if replay.states[at - 1] - replay.states[at])
    return next(replaced, 0)


def _files_at(replay: Replay, event: Viewed) -> set[str]:
    return {path for path in replay.states[event.position] if path.startswith(f"{event.partition}/")}


def _is_retained(replay: Replay, position: int) -> bool:
    return replay.states[position] <= replay.live | replay.retained.keys()


def _archived_before(replay: Replay) -> int:
    """Return the position up to which the log may be archived: that of the checkpoint before the newest. Both may be of
    the same.
    """
    found = sorted(int(path[-53:-33]) for path in replay.storage if MANIFEST.fullmatch(path))
    return found[-2] if len(found) > 1 else 0
