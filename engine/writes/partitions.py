"""Which partitions hold files, for catalogs that keep lists of them."""

from dataclasses import dataclass

from tallymark.engine.timeline.history import History


@dataclass(frozen=True, slots=True, kw_only=True)
class Partitions:
    """Partition paths, as of a position of the commit log."""

    position: int
    live: frozenset[str]
    """Those that hold files."""
    emptied: frozenset[str]
    """Those that held some once, and hold none."""

    @classmethod
    def of(cls, history: History) -> "Partitions":
        live = history.live_partitions
        return cls(position=history.head, live=live, emptied=history.partitions - live)
