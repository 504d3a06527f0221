"""What lies in a marker directory, read around both sides."""

import re
from pathlib import Path

_SEGMENT = re.compile(r"MARKERS\d+")

LINE_END = ".marker.CREATE"


def folder(table: Path, instant: str) -> Path:
    return table / ".hoodie" / ".temp" / instant


def segments(table: Path, instant: str) -> list[Path]:
    found = folder(table, instant)
    return sorted(path for path in found.iterdir() if _SEGMENT.fullmatch(path.name)) if found.exists() else []


def lines(table: Path, instant: str) -> frozenset[str]:
    """All lines, whether they have been finished or not."""
    texts = (path.read_text(errors="replace") for path in segments(table, instant))
    return frozenset(line for text in texts for line in text.split("\n") if line)


def line(path: str) -> str:
    return f"{path}{LINE_END}"
