"""The line itself, without Spark."""

import io
import sys
from types import ModuleType
from typing import Any

import pytest
from rich.console import Console

from tallymark.spark_glue.progress_line import NotebookLine, Reading, TerminalLine, line_for

READING = Reading(
    instant="20261121093000000",
    tasks=12,
    tasks_known=300,
    files=40,
    rows=1_200_000,
    bytes=3 << 20,
    markers=52,
    seconds=2,
)
TEXT = "tallymark 20261121093000000: 12/300 tasks, 52 markers\nfinished: 40 files, 1,200,000 rows, 3.0 MiB, 1.5 MiB/s"


def test_a_reading_says_what_is_known() -> None:
    assert str(READING) == TEXT


def test_before_the_first_task_nothing_is_made_up() -> None:
    begun = Reading(instant="i", tasks=0, tasks_known=0, files=0, rows=0, bytes=0, markers=None, seconds=0)
    assert str(begun) == "tallymark i: 0/? tasks, direct markers\nfinished: 0 files, 0 rows, 0 B, 0 B/s"


def test_a_terminal_shows_the_newest_reading() -> None:
    console = Console(file=io.StringIO(), force_terminal=True, width=80)
    with line_for("20261121093000000", console=console) as line:
        assert isinstance(line, TerminalLine)
        line.show(READING)
    assert isinstance(console.file, io.StringIO)
    assert all(line in console.file.getvalue() for line in TEXT.splitlines())


class RecordingDisplay(ModuleType):
    """Stands for IPython's: what a cell would show, in order."""

    def __init__(self) -> None:
        super().__init__("IPython.display")
        self.shown: list[Any] = []

    def display(self, shown: object, *, display_id: bool) -> "RecordingDisplay":
        assert display_id, "else it could not be updated"
        self.update(shown)
        return self

    def update(self, shown: object) -> None:
        self.shown.append(shown)


def test_a_notebook_is_known_as_rich_knows_it(monkeypatch: pytest.MonkeyPatch) -> None:
    display = RecordingDisplay()
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    with line_for("20261121093000000", console=Console(force_jupyter=True)) as line:
        assert isinstance(line, NotebookLine)
        line.show(READING)
    begun, shown = display.shown
    assert repr(begun) == "tallymark 20261121093000000"
    text = TEXT.replace("\n", "<br>")
    assert shown._repr_html_() == f"<progress value='12' max='300'></progress> {text}"
