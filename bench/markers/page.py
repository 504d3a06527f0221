"""How a table looks here."""

from collections.abc import Sequence

from rich import box
from rich.table import Table

WIDTH = 150
"""Of a page where no terminal says otherwise."""


def table(title: str, columns: Sequence[str], *, first: str = "") -> Table:
    """Rows begin with what they are of; the rest are figures. The title stays on one line, if there is room."""
    page = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, min_width=min(len(title), WIDTH))
    page.add_column(first, no_wrap=True)
    for name in columns:
        page.add_column(name, justify="right", no_wrap=True)
    return page
