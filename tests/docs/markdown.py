"""Tables of our own documentation, as rows of cells."""

from collections.abc import Sequence
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"


def table_after(page: str, heading: str) -> list[list[str]]:
    """The rows of the first table below a heading, without its head."""
    lines = (DOCS / page).read_text().partition(f"\n{heading}\n")[2].splitlines()
    first = next(number for number, line in enumerate(lines) if line.startswith("|"))
    rows = []
    for line in lines[first + 2 :]:
        if not line.startswith("|"):
            break
        rows.append([cell.strip() for cell in line.strip("|").split("|")])
    return rows


def names_in(cell: str) -> Sequence[str]:
    """What stands in backticks."""
    return cell.split("`")[1::2]
