"""Result of a committed write, as its caller gets it."""

import html
import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass

from tallymark.engine.timeline.entry import LogEntry
from tallymark.engine.timeline.outcome import outcome_of
from tallymark.engine.timeline.summary import ChangeSummary, MarkerMode, SizingSummary


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteResult:
    """A committed write. Printed or shown in a notebook it is a table; as JSON it is one object.

    All fields but ``position``, ``is_rerun``, ``pending`` and ``catalog`` are also in the commit of the Hudi timeline,
    as JSON in the extra metadata ``tallymark.result``.
    """

    instant: str
    position: int
    """The number of its entry in the commit log."""
    txn: str | None
    """The name under which it was to be committed once; None if it had none."""
    is_rerun: bool
    """An earlier write with this txn was committed. All other fields describe that write: this one left nothing."""
    rows: int
    """Rows that the write has added; its files also contain those of small files that they replace."""
    bytes: int
    """Size of its files."""
    files: int
    partitions: int
    """Partitions that files were added to."""
    removed_files: int
    """Files of earlier writes that this one replaced."""
    fences: int
    """Names of lost task attempts that are occupied by empty files for a while; 0 on local disk and HDFS."""
    marker_mode: MarkerMode
    """How markers were kept in effect: ``batched`` by the service; ``direct``, one object each, by the tasks; ``mixed``
    where some tasks could not reach the service for some time.
    """
    markers: int
    direct_markers: int
    """Of the markers, those that tasks have put themselves."""
    marker_objects: int
    """Objects that contained the markers at the commit."""
    puts: int
    """Puts of markers, the service's repeats included."""
    seconds: float
    """From the moment at which tasks could start to the moment at which the entry was put."""
    pending: str | None
    """Steps after the commit that could not be done; the commit is valid, and the next write or ``clean`` does them."""
    sizing: SizingSummary | None = None
    """The planned sizes of its files and the actual ones; None where nothing was planned."""
    changes: ChangeSummary | None = None
    """What became of the rows of an upsert or delete; None for another mode."""
    catalog: str | None = None
    """The change of the catalog table's partitions; None where none was named, or it failed."""

    @classmethod
    def of(cls, position: int, entry: LogEntry, *, is_rerun: bool = False, pending: str | None = None) -> "WriteResult":
        """Return what a commit's entry records. Raises CorruptObject for an entry that does not record all of it."""
        return cls(position=position, is_rerun=is_rerun, pending=pending, **outcome_of(entry))

    def to_json(self) -> str:
        """Return one object on one line, keyed by the names of the fields; sizes in bytes, times in seconds."""
        return json.dumps(asdict(self))

    def __str__(self) -> str:
        lines = list(self._lines())
        width = max(len(label) for label, _ in lines)
        return "\n".join(f"{label:<{width}}  {value}" for label, value in lines)

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><th style='text-align:left'>{html.escape(label)}</th><td>{html.escape(value)}</td></tr>"
            for label, value in self._lines()
        )
        return f"<table>{rows}</table>"

    def _lines(self) -> Iterator[tuple[str, str]]:
        """Yield labels and values for people; empty ones are left out."""
        yield "instant", self.instant
        yield "position", f"{self.position:,}"
        if self.txn is not None:
            yield "txn", self.txn
        if self.is_rerun:
            yield "rerun", "committed before; nothing was written"
        yield "rows", f"{self.rows:,}"
        yield "data", shown_bytes(self.bytes)
        for label in ("files", "partitions", "removed_files", "fences"):
            yield label.replace("_", " "), f"{getattr(self, label):,}"
        if self.changes is not None:
            yield from _change_lines(self.changes)
        if self.sizing is not None:
            yield from _sizing_lines(self.sizing)
        yield "marker mode", self.marker_mode
        for label in ("markers", "direct_markers", "marker_objects", "puts"):
            yield label.replace("_", " "), f"{getattr(self, label):,}"
        yield "duration", f"{self.seconds:,.3f} s"
        if self.catalog is not None:
            yield "catalog", self.catalog
        if self.pending is not None:
            yield "pending", self.pending


def _change_lines(found: ChangeSummary) -> Iterator[tuple[str, str]]:
    for label in ("inserted", "updated", "deleted", "ignored"):
        yield label, f"{getattr(found, label):,}"
    if found.superseded:
        yield "superseded", f"{found.superseded:,} of the deleted rows, whose keys are elsewhere now"
    yield "looked up", f"{found.looked_up_files:,} files, {shown_bytes(found.looked_up_bytes)}"
    yield "rewritten", f"{found.rewritten_files:,} files, {shown_bytes(found.rewritten_bytes)}"
    if found.removed_files:
        yield "removed whole", f"{found.removed_files:,} files, {shown_bytes(found.removed_bytes)}"


def _sizing_lines(found: SizingSummary) -> Iterator[tuple[str, str]]:
    planned = f"{found.planned_files:,} files, {shown_bytes(found.planned_bytes)}"
    error = found.size_error_p95
    off = "" if error is None else f"; sizes within {100 * error:,.1f} % of it (p95)"
    yield "planned", f"{planned}{off}"
    if found.planned_fills:
        filled = f"{found.filled_files:,} of {found.planned_fills:,} small files"
        yield "filled", f"{filled}, {shown_bytes(found.rewritten_bytes)} written once more"
    if found.lost_fills:
        yield "lost fills", f"{found.lost_fills:,}, rewritten: another write had replaced the small files"


def shown_bytes(count: int) -> str:
    """Return the size in the largest binary unit that it reaches, such as ``1.2 MiB``. All output uses this format."""
    power = min(max(count.bit_length() - 1, 0) // 10, 4)
    return f"{count:,} B" if power == 0 else f"{count / 1024**power:,.1f} {('KiB', 'MiB', 'GiB', 'TiB')[power - 1]}"
