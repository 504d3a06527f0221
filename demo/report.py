"""What a person sees: plain ASCII, 100 columns, the same on a terminal, in a pipe and in a log."""

import shutil
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from rich.box import ASCII
from rich.console import Console
from rich.table import Table

WIDTH = 100
DOT_S = 2.0

Cell = str | int | float


class Report:
    """Writes to stdout, at once."""

    def __init__(self) -> None:
        if hasattr(sys.stdout, "reconfigure"):
            sys.stdout.reconfigure(errors="backslashreplace")  # a folder may be called what the terminal cannot show
        self._console = Console(width=_width(), highlight=False, markup=False, emoji=False)
        self._began = time.monotonic()

    @property
    def seconds(self) -> float:
        """Since the beginning."""
        return time.monotonic() - self._began

    def headline(self, text: str) -> None:
        self._console.print(f"\n{text}\n{'-' * len(text)}", style="bold", soft_wrap=True)

    def say(self, text: str) -> None:
        self._console.print(text)

    def command(self, text: str) -> None:
        """A line to be copied: never wrapped."""
        self._console.print(f"  {text}", soft_wrap=True)

    def table(self, heads: Sequence[str], rows: Sequence[Sequence[Cell]]) -> None:
        """The first column to the left, numbers to the right."""
        shown = Table(box=ASCII)
        for position, head in enumerate(heads):
            is_text = position == 0 or any(isinstance(row[position], str) for row in rows)
            shown.add_column(head, justify="left" if is_text else "right", overflow="fold", no_wrap=position == 0)
        for row in rows:
            shown.add_row(*map(_shown, row))
        self._console.print(shown)

    @contextmanager
    def working(self, what: str, *, dots: bool = True) -> Iterator[None]:
        """Say what goes on, show by dots that it does, and say how long it took."""
        began = time.monotonic()
        ended = threading.Event()
        _put(f"... {what} " if dots else f"... {what}\n")
        dotter = threading.Thread(target=_dot, args=(ended,), daemon=True)
        if dots:
            dotter.start()
        try:
            yield
        except BaseException:
            outcome = "failed"
            raise
        else:
            outcome = "done"
        finally:
            ended.set()
            if dots:
                dotter.join()
            _put(f" {outcome} in {time.monotonic() - began:.1f} s\n")


def _width() -> int:
    """A terminal's own width where that is less; anything else takes the full width."""
    return min(WIDTH, shutil.get_terminal_size((WIDTH, 24)).columns) if sys.stdout.isatty() else WIDTH


def _dot(ended: threading.Event) -> None:
    while not ended.wait(DOT_S):
        _put(".")


def _put(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()


def _shown(cell: Cell) -> str:
    match cell:
        case str():
            return cell
        case float():
            return f"{cell:,.1f}"
        case _:
            return f"{cell:,}"
