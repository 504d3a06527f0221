"""What a committed write tells its caller."""

import html
from dataclasses import asdict, dataclass
from typing import Literal

MarkerMode = Literal["batched", "direct", "mixed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteResult:
    """A committed write. In a notebook it shows as a table."""

    instant: str
    position: int
    """The number of its entry in the commit log."""
    rows: int
    bytes: int
    files: int
    partitions: int
    """Partitions that files were added to."""
    removed_files: int
    """Files of earlier writes that this one replaced."""
    fences: int
    """Names of lost task attempts that are occupied by empty files for a while; 0 on local disk and HDFS."""
    marker_mode: MarkerMode
    """How markers were kept in effect: ``batched`` by the service; ``direct``, an object each, by the tasks; ``mixed``
    where some tasks could not reach the service, for a while at least."""
    markers: int
    direct_markers: int
    """Those of them that tasks have put themselves."""
    marker_objects: int
    """Objects that held the markers at the commit."""
    puts: int
    """Puts that the markers cost, the service's repeats included."""
    seconds: float
    """From the moment that tasks could begin to the visibility to all readers of the table format."""
    pending: str | None = None
    """What could not be finished after the commit, which stands; the next write or ``clean`` does it."""

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><th style='text-align:left'>{html.escape(name)}</th><td>{html.escape(_shown(value))}</td></tr>"
            for name, value in asdict(self).items()
            if value is not None
        )
        return f"<table>{rows}</table>"


def _shown(value: object) -> str:
    match value:
        case float():
            return f"{value:,.3f}"
        case int():
            return f"{value:,}"
        case _:
            return str(value)
