"""How an answer's tables look on a page."""

from collections.abc import Iterable, Mapping

from rich import box
from rich.console import Console
from rich.table import Table


def table(title: str, columns: Iterable[str]) -> Table:
    """Rows begin with what they are of; the rest are figures."""
    page = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD)
    page.add_column("", no_wrap=True)
    for name in columns:
        page.add_column(name, justify="right")
    return page


def print_tables(page: Console, tables: Iterable[Table], absent: Mapping[str, str]) -> None:
    """One below the other, and below them who could not take part, with the reason."""
    for each in tables:
        page.print()
        page.print(each)
    for title, reason in absent.items():
        page.print(f"  without {title}: {reason}")
