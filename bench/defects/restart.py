"""A server dies in the middle of an instant, and another goes on with it."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

from tallymark.bench.defects import stored
from tallymark.bench.defects.answer import Finding
from tallymark.bench.defects.asking import data_file
from tallymark.bench.defects.side import MarkerServer, Side
from tallymark.bench.defects.trial import Ground, Trial

INSTANT = "20260101000000000"


def findings(ground: Ground) -> Iterator[Finding]:
    for side in ground.sides:
        yield _finding(side, ground.table("restart"), ground.markers)


def _finding(side: Side, table: Path, count: int) -> Finding:
    paths = [data_file(f"day={number % 28 + 1:02}", number) for number in range(count + count // 2)]
    with side.server(table) as server:
        acked = _create(server, paths[:count])
        os.kill(server.pid, signal.SIGKILL)
    before = stored.lines(table, INSTANT)
    with side.server(table) as server:
        acked += _create(server, paths[count:])
        known = server.names(INSTANT)
    with side.server(table) as server:
        later = server.names(INSTANT)
    expected = {stored.line(path) for path in acked}
    lines = stored.lines(table, INSTANT)
    lost, made_up = len(expected - lines), len(lines - expected)
    return Finding(
        trial="restart",
        side=side.title,
        tried=f"{count} markers acked one after the other; SIGKILL when nothing was in flight; a new server; "
        f"{len(paths) - count} more of the same instant; a third server",
        shown="yes" if lost or made_up or expected - later else "no",
        seen=f"{len(acked)} acked; {len(expected & before)} of the first {count} a line of their own before the second "
        f"server began, and of all {len(acked)} at the end {len(expected & lines)}; {made_up} lines that are nobody's "
        f"marker; the second server names {len(expected & known)}, the third {len(expected & later)}",
        counts={
            "acked": len(acked),
            "lines_before": len(expected & before),
            "lines_after": len(expected & lines),
            "lines_of_none": made_up,
            "named_by_second": len(expected & known),
            "named_by_third": len(expected & later),
        },
    )


def _create(server: MarkerServer, paths: list[str]) -> list[str]:
    client = server.client(INSTANT)
    try:
        return [path for path in paths if client.create(path)]
    finally:
        client.close()


TRIAL = Trial(
    "restart",
    "A server that goes on with an instant puts what it has loaded back with commas between the markers and no end of "
    "line: the old markers and the next new one become one line, of which a rollback understands the first file only.",
    findings,
)
