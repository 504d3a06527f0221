"""Partitions that contain files, for catalogs that keep lists of them."""

from dataclasses import dataclass

from tallymark.engine.views.view import View


@dataclass(frozen=True, slots=True, kw_only=True)
class Partitions:
    """Partition paths, as of a position of the commit log."""

    position: int
    live: frozenset[str]
    """Those that hold files."""
    emptied: frozenset[str]
    """Those that held some once, and hold none."""

    @classmethod
    def of(cls, view: View) -> "Partitions":
        """As of the view's head."""
        live = frozenset(partition for partition, state in view.states.items() if state.live)
        return cls(position=view.head, live=live, emptied=frozenset(view.states) - live)
