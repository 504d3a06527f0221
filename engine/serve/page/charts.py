"""Charts as inline SVG. Places are percentages across and pixels down, so that text keeps its size on every screen."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from markupsafe import Markup

from tallymark.engine.documents.files import FilesDocument
from tallymark.engine.documents.timeline import EntryFields
from tallymark.engine.jobs.result import shown_bytes

TOP, BOTTOM, HEIGHT = 18, 138, 160
"""Pixels from the top: of the highest bar, of the axis, and in total."""

SLOTS = 16
"""Bars that a chart has space for at least: a single one does not fill it."""

FILLED = 0.82
"""Share of the space of a bar that it fills."""

LABELS = 6
"""Labels below the axis, at most."""


@dataclass(frozen=True, slots=True)
class Bar:
    value: float
    title: str
    label: str
    small_share: float = 0.0
    """Share of its width that is left of the limit of small files."""


def size_chart(found: FilesDocument) -> Markup:
    """Draw the number of files by size; those below the limit of small files have another colour."""
    bars = []
    for bucket in found["buckets"]:
        least, below = shown_bytes(bucket["least"]), shown_bytes(bucket["below"])
        title = f"{least} to {below}: {bucket['files']:,} files, {shown_bytes(bucket['bytes'])}"
        small = _share_below(found["small_below"], bucket["least"], bucket["below"])
        bars.append(Bar(bucket["files"], title, least, small))
    summary = (
        f"Files by size: {found['files']:,} files, half of them up to {shown_bytes(found['p50'])}, the largest "
        f"{shown_bytes(found['largest'])}; {found['small_files']:,} are below {shown_bytes(found['small_below'])}."
    )
    most = max((bar.value for bar in bars), default=0)
    return _chart(summary, bars, top=f"{most:,} files")


def commit_chart(entries: Sequence[EntryFields], measure: Literal["rows", "bytes"]) -> Markup:
    """Draw what each entry of the log has added."""
    bars = []
    for entry in entries:
        added = f"{entry['rows']:,} rows, {shown_bytes(entry['bytes'])}"
        bars.append(Bar(entry[measure], f"Position {entry['position']:,}, {entry['operation']}: {added}", _at(entry)))
    most = max((entry[measure] for entry in entries), default=0)
    top = shown_bytes(most) if measure == "bytes" else f"{most:,} rows"
    span = f"positions {_at(entries[0])} to {_at(entries[-1])}" if entries else "no commits"
    return _chart(f"Added {measure} by commit, {span}; at most {top}.", bars, top=top)


def share_bar(share: float) -> Markup:
    """Draw a share beside its number."""
    return Markup(
        '<svg class="share" width="44" height="6" aria-hidden="true"><rect class="rest" width="44" height="6" rx="3"/>'
        '<rect class="small" width="{:.1f}" height="6" rx="3"/></svg>'
    ).format(44 * share)


def _at(entry: EntryFields) -> str:
    return f"{entry['position']:,}"


def _share_below(limit: int, least: int, below: int) -> float:
    """Return where the limit is within a bucket, on the logarithmic axis; 0 left of it, 1 right of it."""
    if limit <= max(least, 1):
        return float(least < limit)
    return min(1.0, math.log2(limit / max(least, 1)) / math.log2(below / max(least, 1) if below > 1 else 2))


def _chart(summary: str, bars: Sequence[Bar], *, top: str) -> Markup:
    most = max((bar.value for bar in bars), default=0) or 1
    slot = 100 / max(len(bars), SLOTS)
    step = math.ceil(max(len(bars), SLOTS) / LABELS)
    parts = [_bar(bar, number * slot, slot, bar.value / most) for number, bar in enumerate(bars)]
    parts += [_label(bars[number].label, (number + FILLED / 2) * slot) for number in range(0, len(bars), step)]
    return Markup(
        '<svg class="chart" role="img" aria-label="{}" width="100%" height="{}">'
        '<line class="grid" x1="0" x2="100%" y1="{}" y2="{}"/><text class="tick" x="0" y="{}">{}</text>'
        '{}<line class="axis" x1="0" x2="100%" y1="{}" y2="{}"/></svg>'
    ).format(summary, HEIGHT, TOP, TOP, TOP - 6, top, Markup("").join(parts), BOTTOM, BOTTOM)


def _label(text: str, at: float) -> Markup:
    return Markup('<text class="tick middle" x="{:.2f}%" y="{}">{}</text>').format(at, HEIGHT - 5, text)


def _bar(bar: Bar, left: float, slot: float, share: float) -> Markup:
    """Return its column, which is not empty for a positive value, and the space above it, which has the same title."""
    height = max(1.5 * (bar.value > 0), share * (BOTTOM - TOP))
    width = slot * FILLED
    split = width * bar.small_share
    columns = [("small", left, split), ("bar", left + split, width - split)]
    drawn = [
        Markup('<rect class="{}" x="{:.3f}%" width="{:.3f}%" y="{:.1f}" height="{:.1f}"/>').format(
            name, at, wide, BOTTOM - height, height
        )
        for name, at, wide in columns
        if wide > 0 and height > 0
    ]
    area = Markup('<rect class="area" x="{:.3f}%" width="{:.3f}%" y="{}" height="{}"/>').format(
        left, slot, TOP, BOTTOM - TOP
    )
    return Markup("<g><title>{}</title>{}{}</g>").format(bar.title, area, Markup("").join(drawn))
