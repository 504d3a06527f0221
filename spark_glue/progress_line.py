"""Progress line: on a terminal, or in a notebook cell that is redrawn."""

import html
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from typing import Any, Protocol, Self

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from tallymark.engine.jobs.result import shown_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """State of a job at a moment."""

    instant: str
    tasks: int
    """Finished tasks, of all stages that the write has needed so far."""
    tasks_known: int
    """Finished tasks and those that Spark has reported; 0 before the first."""
    files: int
    rows: int
    bytes: int
    """Like files and rows, of finished tasks."""
    markers: int | None
    """Markers acked by the job's service; None with direct markers, of which the driver learns at the commit."""
    seconds: float
    """Seconds since the tasks started."""

    def __str__(self) -> str:
        """Return two lines."""
        speed = shown_bytes(round(self.bytes / self.seconds)) if self.seconds > 0 else "0 B"
        markers = "direct markers" if self.markers is None else f"{self.markers:,} markers"
        return (
            f"tallymark {self.instant}: {self.tasks:,}/{self.tasks_known or '?'} tasks, {markers}\n"
            f"finished: {self.files:,} files, {self.rows:,} rows, {shown_bytes(self.bytes)}, {speed}/s"
        )


class Line(AbstractContextManager["Line"], Protocol):
    def show(self, reading: Reading) -> None: ...


def line_for(instant: str, *, console: Console) -> Line:
    """Return the line for a notebook, which rich recognises, or for a terminal. A notebook needs IPython only."""
    return NotebookLine(instant) if console.is_jupyter else TerminalLine(instant, console)


class TerminalLine:
    """A bar that is redrawn in place; where the console is not a terminal, its last state once."""

    def __init__(self, instant: str, console: Console) -> None:
        columns = (
            BarColumn(bar_width=10),
            TextColumn("{task.fields[reading]}", markup=False),
            TimeElapsedColumn(),
        )
        self._progress = Progress(*columns, console=console)
        self._line = self._progress.add_task("", total=None, reading=f"tallymark {instant}")

    def show(self, reading: Reading) -> None:
        self._progress.update(
            self._line, completed=reading.tasks, total=reading.tasks_known or None, reading=str(reading)
        )

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()


class NotebookLine:
    """One output of the running cell, updated in place; it remains when the cell has ended."""

    def __init__(self, instant: str) -> None:
        from IPython.display import display  # only where a notebook has it loaded

        self._started = _Shown(f"tallymark {instant}", 0, 0)
        self._display: Any = display
        self._output: Any = None

    def show(self, reading: Reading) -> None:
        with suppress(Exception):  # a closed notebook must not end the job
            self._output.update(_Shown(str(reading), reading.tasks, reading.tasks_known))

    def __enter__(self) -> Self:
        self._output = self._display(self._started, display_id=True)
        return self

    def __exit__(self, *_: object) -> None:
        pass


@dataclass(frozen=True, slots=True)
class _Shown:
    text: str
    done: int
    known: int

    def __repr__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        text = html.escape(self.text).replace("\n", "<br>")
        return f"<progress value='{self.done}' max='{self.known or 1}'></progress> {text}"
