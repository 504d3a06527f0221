"""Servers die under load, again and again: is every marker there that was acked?"""

import os
import signal
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random

from tallymark.bench.defects import stored
from tallymark.bench.defects.answer import Finding
from tallymark.bench.defects.asking import asking
from tallymark.bench.defects.side import MarkerServer, Side, Unanswered
from tallymark.bench.defects.trial import Ground, Trial

LIFE_S_MAX = 1.0
"""A life ends at a random moment of so many seconds after its first ack."""

FIRST_ACK_S_MAX = 60.0
_POLL_S = 0.01

SWIFT = ("--marker-batch-interval-ms", "1")


@dataclass(slots=True)
class Lives:
    lives: int = 0
    acked: int = 0
    missing: int = 0
    """Acked, and no line of any segment after the kill."""
    lives_that_lost: int = 0
    unnamed: int = 0
    """Acked, and not named by the server that was started next."""
    unreadable: int = 0
    """Instants that the server that was started next could not read."""


def findings(ground: Ground) -> Iterator[Finding]:
    sides: list[Side] = [ground.ours()]
    if ground.has_hudi:
        sides = [ground.hudi(), ground.hudi(*SWIFT, told="a tick of 1 ms"), *sides]
    for side in sides:
        yield _finding(ground, side)


def _finding(ground: Ground, side: Side) -> Finding:
    found, table, random = Lives(), ground.table("kills"), Random(0)  # noqa: S311 no secret
    before: tuple[str, frozenset[str]] | None = None
    for life in range(ground.kills + 1):
        instant = f"202601010000{life:05}"
        with side.server(table) as server:
            if before:
                _look_back(server, *before, found)
            if life < ground.kills:
                before = instant, _live_and_die(ground, server, table, instant, random, found)
    return Finding(
        trial="kills",
        side=side.title,
        tried=f"{found.lives} lives of a server, each with an instant of its own and {ground.clients} clients that ask "
        f"all the time, ended by SIGKILL up to {LIFE_S_MAX:g} s after the first ack; {found.acked:,} acks",
        shown="yes" if found.missing or found.unnamed or found.unreadable else "no",
        seen=f"{found.missing:,} acked markers on no line of the files, after {found.lives_that_lost} of the kills; "
        f"{found.unnamed:,} not named by the next server, which could not read {found.unreadable} of the instants",
        counts={
            "lives": found.lives,
            "acked": found.acked,
            "missing": found.missing,
            "lives_that_lost": found.lives_that_lost,
            "unnamed": found.unnamed,
            "unreadable": found.unreadable,
        },
    )


def _live_and_die(
    ground: Ground, server: MarkerServer, table: Path, instant: str, random: Random, found: Lives
) -> frozenset[str]:
    """What it has acked."""
    never = threading.Event()
    with asking(server, instant, ground.clients) as askers:
        for _ in range(int(FIRST_ACK_S_MAX / _POLL_S)):
            if any(asker.acked for asker in askers):
                break
            never.wait(_POLL_S)
        never.wait(random.uniform(0, LIFE_S_MAX))
        os.kill(server.pid, signal.SIGKILL)
    acked = frozenset(stored.line(path) for asker in askers for path in asker.acked)
    missing = len(acked - stored.lines(table, instant))
    found.lives += 1
    found.acked += len(acked)
    found.missing += missing
    found.lives_that_lost += bool(missing)
    return acked


def _look_back(server: MarkerServer, instant: str, acked: frozenset[str], found: Lives) -> None:
    try:
        found.unnamed += len(acked - server.names(instant))
    except Unanswered:
        found.unreadable += 1


TRIAL = Trial(
    "kills",
    "Each flush writes a whole file anew in its place: a server that dies meanwhile, on a file system without atomic "
    "overwriting, takes markers with it that were acked long before.",
    findings,
)
