"""Storage takes no more bytes for a while, as a full disk does: what is the sender told, and what is left?

The limit is the system's own on the size of a process's files (``RLIMIT_FSIZE``), set from outside while it runs.
"""

import os
import resource
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tallymark.bench.defects import stored
from tallymark.bench.defects.answer import Finding
from tallymark.bench.defects.asking import data_file
from tallymark.bench.defects.side import MarkerServer, Side, Unanswered
from tallymark.bench.defects.trial import Ground, Trial

INSTANT = "20260101000000000"
DURING = 20
WAIT_S = 10.0
"""For an answer, each; ours gives up after four attempts, within a second on a disk that refuses at once."""

UNLIMITED = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
REFUSES = (0, resource.RLIM_INFINITY)


def findings(ground: Ground) -> Iterator[Finding]:
    sides: list[Side] = [ground.ours(WAIT_S)]
    if ground.has_hudi:
        sides = [ground.hudi(wait_s=WAIT_S), *sides]
    for side in sides:
        yield _finding(side, ground.table("full"), ground.markers)


def _finding(side: Side, table: Path, count: int) -> Finding:
    before = [data_file("day=01", number) for number in range(count)]
    during = [data_file("day=02", number) for number in range(DURING)]
    with side.server(table) as server:
        client = server.client(INSTANT)
        assert all(map(client.create, before)), "before anything happens"
        client.close()
        resource.prlimit(server.pid, resource.RLIMIT_FSIZE, REFUSES)
        answers = _ask(server, during)
        resource.prlimit(server.pid, resource.RLIMIT_FSIZE, UNLIMITED)
        again = _ask(server, [path for path, answer in zip(during, answers, strict=True) if answer is None])
        os.kill(server.pid, signal.SIGKILL)
    lines = stored.lines(table, INSTANT)
    acked = [path for path, answer in zip(during, answers, strict=True) if answer]
    lost_before = sum(stored.line(path) not in lines for path in before)
    lost_during = sum(stored.line(path) not in lines for path in acked)
    return Finding(
        trial="full storage",
        side=side.title,
        tried=f"{count} markers, one after the other; then no byte can be written, and {DURING} more are asked for; "
        "then all can be written, whoever got no answer asks again, and the server is killed",
        shown="yes" if lost_before or lost_during or again.count(False) else "no",
        seen=f"of the {DURING}, {len(acked)} were acked, {lost_during} of them on no line of the files; "
        f"{answers.count(None)} were not, and of these, asked again, {again.count(True)} were acked and "
        f"{again.count(False)} told `false`; of the {count} before, {lost_before} are on no line any more",
        counts={
            "acked_during": len(acked),
            "missing_of_these": lost_during,
            "unanswered": answers.count(None),
            "acked_again": again.count(True),
            "false_again": again.count(False),
            "missing_of_before": lost_before,
        },
    )


def _ask(server: MarkerServer, paths: list[str]) -> list[bool | None]:
    """Each over a connection of its own, a few at once; None: not answered, or by an error."""

    def ask(path: str) -> bool | None:
        client = server.client(INSTANT)
        try:
            return client.create(path)
        except Unanswered:
            return None
        finally:
            client.close()

    with ThreadPoolExecutor(DURING) as pool:
        return list(pool.map(ask, paths))


TRIAL = Trial(
    "full storage",
    "A flush that fails leaves its requests without an answer, and their markers in the server's memory, which says "
    "`false` when they are asked for again; the file that was to be written anew has lost those of before; a failure "
    "that shows when the file is closed is swallowed, and the markers are acked.",
    findings,
)
