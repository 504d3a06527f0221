"""Shapes and words of an SVG, written by hand: no plotting library for two kinds of plot."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol
from xml.sax.saxutils import escape

FONTS = "system-ui, Helvetica, Arial, DejaVu Sans, sans-serif"

INK, FAINT, GRID = "#1b1f24", "#6b7280", "#e3e6ea"


class Panel(Protocol):
    @property
    def height(self) -> int: ...

    def drawn(self, top: int) -> Iterator[str]: ...


def stacked(panels: Sequence[Panel], *, top: int) -> Iterator[str]:
    """One below the other."""
    for panel in panels:
        yield from panel.drawn(top)
        top += panel.height


def document(parts: Iterable[str], *, width: int, height: int) -> str:
    """A whole SVG document, on white."""
    size = f'width="{width}" height="{height}"'
    opening = f'<svg xmlns="http://www.w3.org/2000/svg" {size} viewBox="0 0 {width} {height}" font-family="{FONTS}">'
    return "\n".join([opening, f'<rect {size} fill="#ffffff"/>', *parts, "</svg>\n"])


def line(x1: float, y1: float, x2: float, y2: float, colour: str, *, width: float = 1) -> str:
    ends = f'x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"'
    return f'<line {ends} stroke="{colour}" stroke-width="{width}"/>'


def text(
    x: float,
    y: float,
    words: str,
    *,
    colour: str = INK,
    anchor: str = "start",
    size: float = 12.5,
    weight: str = "400",
    faint: str = "",
) -> str:
    """``faint`` goes on behind the text, smaller and greyer."""
    where = f'x="{x:.1f}" y="{y}" text-anchor="{anchor}"'
    more = f'<tspan dx="8" fill="{FAINT}" font-size="11" font-weight="400">{escape(faint)}</tspan>' if faint else ""
    return f'<text {where} fill="{colour}" font-size="{size}" font-weight="{weight}">{escape(words)}{more}</text>'
