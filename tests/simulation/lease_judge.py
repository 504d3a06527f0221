"""What a reader may count on who holds a lease: its files are there, from the moment it is told to that of its end."""

from tests.history import Befell, Event, Held, History, Landed, Released, Removed
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
    """When each was renewed, as storage tells."""

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
