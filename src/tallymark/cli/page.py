"""Elements of every page. Without a terminal, no text is wrapped or cut, so that grep finds it whole."""

import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

UNBOUNDED = 100_000
"""Columns of a page that is not a terminal."""


def console(*, width: int = UNBOUNDED) -> "Console":
    """Return a console without markup: names of tables and partitions may contain any character. A terminal has its own
    width.
    """
    from rich.console import Console

    return Console(width=None if sys.stdout.isatty() else width, markup=False, highlight=False, emoji=False)


def print_table(
    page: "Console",
    headings: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    folding: Sequence[int] = (),
    numbers: Sequence[int] = (),
    has_header: bool = True,
) -> None:
    page.print(table_of(headings, rows, folding=folding, numbers=numbers, has_header=has_header))
    page.print()


def table_of(
    headings: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    folding: Sequence[int] = (),
    numbers: Sequence[int] = (),
    has_header: bool = True,
) -> "Table":
    """Return a table in which only the ``folding`` columns wrap where the terminal is narrow."""
    from rich.table import Table

    table = Table(box=None, show_header=has_header, pad_edge=False, padding=(0, 2, 0, 0))
    for index, heading in enumerate(headings):
        folds = index in folding
        table.add_column(
            heading,
            justify="right" if index in numbers else "left",
            overflow="fold" if folds else "ellipsis",
            no_wrap=not folds,
        )
    for row in rows:
        table.add_row(*map(_printable, row))
    return table


def _printable(text: str) -> str:
    """Return the text with escapes for characters that would move the cursor or change colours."""
    return "".join(char if char.isprintable() else repr(char)[1:-1] for char in text)
