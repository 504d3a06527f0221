"""Partitions that contain files, for catalogs that keep lists of them."""

from dataclasses import dataclass

from tallymark.engine.views.view import View


@dataclass(frozen=True, slots=True, kw_only=True)
class Partitions:
    """Partition paths, as of a position of the commit log."""

    position: int
    live: frozenset[str]
    """Partitions that contain files."""
    emptied: frozenset[str]
    """Partitions that contained files once, and contain none now."""

    @classmethod
    def of(cls, view: View) -> "Partitions":
        """Return the partitions as of the view's head."""
        live = frozenset(partition for partition, state in view.states.items() if state.live)
        return cls(position=view.head, live=live, emptied=frozenset(view.states) - live)
