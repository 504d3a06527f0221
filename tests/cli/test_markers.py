"""``tallymark markers``; with ``--watch`` by a process of its own."""

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from io import StringIO
from pathlib import Path
from typing import IO, Any, cast

import pytest
from rich.console import Console
from rich.live import Live

from tallymark.cli.watch_page import _draw
from tallymark.engine.documents.watch import WatchDocument, WatchedFields
from tests.cli.scene import run, run_json, write


@contextmanager
def watching(*arguments: str | Path) -> Iterator[tuple["subprocess.Popen[str]", IO[str]]]:
    program = "from tallymark.cli import main; main()"
    command = [sys.executable, "-c", program, "markers", *map(str, arguments), "--watch", "--every", "0.1"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process, process.stdout
        finally:
            process.kill()


def test_a_watch_of_one_instant_tells_its_markers_until_it_is_over(abandoned):
    with watching(abandoned.folder, abandoned.instant, "--json") as (process, stdout):
        first = json.loads(stdout.readline())
        run_json("rollback", abandoned.folder)
        rest, complaints = process.communicate(timeout=60)
    (found,) = first["instants"]
    assert first["url"] == abandoned.folder.as_uri()
    assert (found["instant"], found["markers"], found["is_over"]) == (abandoned.instant, 2, False)
    (last,) = json.loads(rest.splitlines()[-1])["instants"]
    assert (last["is_over"], last["decision"], last["position"], last["markers"]) == (True, "rollback", 2, 2)
    assert (process.returncode, complaints) == (0, "")


def test_a_watch_of_all_instants_goes_on_until_it_is_interrupted(abandoned):
    with watching(abandoned.folder) as (process, stdout):
        first = stdout.readline()
        run_json("rollback", abandoned.folder)
        lines = [stdout.readline()]
        while "No open instants." not in lines[-1]:
            lines.append(stdout.readline())
        process.send_signal(signal.SIGINT)
        rest, complaints = process.communicate(timeout=60)
    assert f"{abandoned.instant}  append  2 markers, batched" in first
    assert f"{abandoned.instant}  append  rolled back at position 2; 2 markers were seen" in lines[-2]
    assert (process.returncode, rest, complaints) == (0, "", "")


def test_a_terminal_shows_a_table_and_above_it_how_instants_ended():
    paper = StringIO()
    page = Console(file=paper, force_terminal=True, width=160, color_system=None)
    with Live(console=page, auto_refresh=False) as live:
        _draw(live, look(markers=1234, markers_s=61.7, direct_markers=4))
        _draw(live, look(is_over=True, decision="commit", position=7, markers=1234))
    shown = " ".join(paper.getvalue().split())
    assert "1 append 1,234 batched, 4 of them direct 62 3 43.9 KiB 4 s ago" in shown
    assert "1 append committed at position 7; 1,234 markers were seen" in shown
    assert "No open instants." in shown


def look(**fields: Any) -> WatchDocument:
    """At one instant, of which ``fields`` are known."""
    found = {"instant": "1", "operation": "append", "marker_kind": "batched", "direct_markers": 0, "segments": 3}
    found |= {"bytes": 45_000, "beat_age_s": 4.2, "markers_s": None, "is_over": False, "decision": None} | fields
    return {"url": "memory:", "at": "2026-11-22T01:02:03.000+00:00", "instants": [cast("WatchedFields", found)]}


@pytest.mark.parametrize("options", [[], ["--watch"]], ids=["once", "watch"])
def test_an_instant_that_is_over_is_refused_instead_of_shown_empty(tmp_path, options):
    instant = write(tmp_path, 1).instant
    result = run("markers", tmp_path, instant, *options)
    assert (result.exit_code, result.stdout) == (1, "")
    assert f"instant '{instant}' is not open" in result.stderr
