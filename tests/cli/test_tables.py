"""Pages of documents: names, numbers and widths. The documents are the golden ones, but for what a test sets."""

import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

from rich.console import Console

from tallymark.cli import page
from tallymark.cli.status import show_status
from tallymark.cli.timeline import show_timeline
from tallymark.engine.documents.status import StatusDocument
from tallymark.engine.documents.timeline import TimelineDocument

GOLDEN = Path(__file__).parent / "golden"
STATUS = json.loads((GOLDEN / "status.json").read_text())
TIMELINE = json.loads((GOLDEN / "timeline.json").read_text())
INSTANT = "20130101000000000"


def status_of(name: str, **changes: object) -> StatusDocument:
    numbers = {"rows": 1_234_567, "bytes": 5_000_000}
    return cast("StatusDocument", {**STATUS, "name": name, **numbers, "open_instants": [], **changes})


def overwrite_of(*partitions: str, prefixes: Sequence[str] = ()) -> TimelineDocument:
    _, overwrite, _ = TIMELINE["entries"]
    scope = {"all": not (partitions or prefixes), "partitions": list(partitions), "prefixes": list(prefixes)}
    entry: Any = {**overwrite, "instant": INSTANT, "scope": scope, "rows": 1_234_567, "bytes": 123_400_000}
    return {"url": TIMELINE["url"], "entries": [entry]}


def shown_by(show, document, *, width: int | None = None) -> str:
    console = page.console()
    if width is not None:
        console = Console(width=width, markup=False, highlight=False, emoji=False)
    with console.capture() as captured:
        show(console, document)
    return captured.get()


def test_without_a_terminal_no_line_is_wrapped_or_cut():
    name = "x" * 5000
    assert name in shown_by(show_status, status_of(name))


def test_a_narrow_terminal_folds_names_and_leaves_instants_whole():
    shown = shown_by(show_timeline, overwrite_of("airport=" + "x" * 100), width=80)
    assert INSTANT in shown
    assert shown.count("x") == 100
    assert all(len(line) <= 80 for line in shown.splitlines())


def test_names_are_shown_as_they_are_not_read_as_markup():
    assert "[red]:smile:[/red]" in shown_by(show_status, status_of("[red]:smile:[/red]"))


def test_what_would_steer_a_terminal_is_shown_as_its_escape():
    shown = shown_by(show_status, status_of("a\x1b[2Jb\nc"))
    assert r"a\x1b[2Jb\nc" in shown
    assert "\x1b" not in shown


def test_a_scope_of_many_partitions_is_shortened():
    assert "p=1, p=2, p=3, 2 more" in shown_by(show_timeline, overwrite_of("p=1", "p=2", "p=3", "p=4", "p=5"))
    assert shown_by(show_timeline, overwrite_of()).split()[-1] == "all"


def test_a_scope_that_is_a_prefix_shows_that_it_goes_on():
    assert "year=2013/...\n" in shown_by(show_timeline, overwrite_of(prefixes=["year=2013"]))


def test_a_commit_that_waits_to_be_finished_is_told_from_an_open_instant():
    (found,) = STATUS["open_instants"]
    writer = {**found, "host": "node1", "pid": 7, "marker_kind": "direct", "beat_age_s": None, "decision": "commit"}
    shown = shown_by(show_status, status_of("flights", open_instants=[writer]))
    assert "node1 process 7  dead, commit to be finished  none            direct" in shown


def test_numbers_are_grouped_and_bytes_also_told_in_short():
    shown = shown_by(show_status, status_of("flights"))
    assert "1,234,567" in shown
    assert "5,000,000 (4.8 MiB)" in shown


def test_output_in_ascii_is_possible():
    stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    show_status(Console(file=stream, width=80), status_of("flights"))
    stream.flush()
    assert b"flights" in stream.buffer.getvalue()
