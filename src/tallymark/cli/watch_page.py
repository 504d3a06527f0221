"""Page of a watch: a table that is redrawn on a terminal, and lines otherwise."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from tallymark.cli.page import console, table_of
from tallymark.engine.documents.watch import WatchDocument, WatchedFields
from tallymark.engine.jobs.result import shown_bytes

IDLE = "No open instants."
HEADINGS = ("open instant", "operation", "markers", "kind", "a second", "segments", "bytes", "last heartbeat")


@contextmanager
def shown_scans() -> Iterator[Callable[[WatchDocument], None]]:
    """Yield a callback for each scan."""
    page = console()
    if sys.stdout.isatty():
        with Live(console=page, auto_refresh=False) as live:
            yield lambda document: _draw(live, document)
        return
    was_idle = False

    def show(document: WatchDocument) -> None:
        nonlocal was_idle
        is_idle = not document["instants"]
        if is_idle and not was_idle:
            _print(page, IDLE)
        was_idle = is_idle
        for found in document["instants"]:
            _print(page, f"{document['at']}  {_ended(found) if found['is_over'] else _line(found)}")

    yield show


def _draw(live: Live, document: WatchDocument) -> None:
    for found in document["instants"]:
        if found["is_over"]:
            live.console.print(_ended(found))  # above the table that is redrawn
    rows = [_row(found) for found in document["instants"] if not found["is_over"]]
    shown = table_of(HEADINGS, rows, numbers=(2, 4, 5, 6)) if rows else Text(IDLE)
    live.update(Group(shown, Text(f"{document['at']}; Ctrl-C ends")), refresh=True)


def _print(page: Console, line: str) -> None:
    """Print at once, also into a pipe."""
    page.print(line)
    page.file.flush()


def _line(found: WatchedFields) -> str:
    instant, operation, markers, kind, rate, segments, size, heartbeat = _row(found)
    return (
        f"{instant}  {operation}  {markers} markers, {kind}  {rate} a second  {segments} segments  {size}  "
        f"last heartbeat {heartbeat}"
    )


def _ended(found: WatchedFields) -> str:
    how = {"commit": "committed", "rollback": "rolled back", "clean": "cleaned", None: "given up"}[found["decision"]]
    where = "" if found["position"] is None else f" at position {found['position']:,}"
    return f"{found['instant']}  {found['operation']}  {how}{where}; {found['markers']:,} markers were seen"


def _row(found: WatchedFields) -> tuple[str, ...]:
    age, rate, direct = found["beat_age_s"], found["markers_s"], found["direct_markers"]
    is_mixed = found["marker_kind"] == "batched" and direct
    return (
        found["instant"],
        found["operation"],
        f"{found['markers']:,}",
        f"batched, {direct:,} of them direct" if is_mixed else found["marker_kind"],
        "-" if rate is None else f"{rate:,.0f}",
        f"{found['segments']:,}",
        shown_bytes(found["bytes"]),
        "none" if age is None else f"{age:,.0f} s ago",
    )
