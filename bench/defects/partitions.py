"""Two writers at once, in other partitions or in the same file group: is a conflict seen where there is one?"""

import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import anyio

from tallymark.bench.defects import stored
from tallymark.bench.defects.answer import Finding, Shown
from tallymark.bench.defects.asking import data_file
from tallymark.bench.defects.hudi_side import HudiServer
from tallymark.bench.defects.table import SCHEMA, make_table, write_rows
from tallymark.bench.defects.trial import Ground, Trial
from tallymark.engine.errors import ConflictError
from tallymark.engine.table import open_table

OLDER, NEWER = "20260101000000000", "20260101000001000"
"""Instants of two writers. Hudi's detection holds the newer against the older."""

PERIOD_MS = 200
"""Between two looks for conflicts; 30 s by default."""

LOOKS = 25
"""How many of these periods it is asked for."""

DETECTION = (
    *("--early-conflict-detection-enable", "--async-conflict-detector-initial-delay-ms", "0"),
    *("--async-conflict-detector-period-ms", str(PERIOD_MS)),
)


@dataclass(frozen=True, slots=True)
class Case:
    told: str
    older: str
    newer: str
    """The files that the two write, below the table."""
    is_conflict: bool


CASES = (
    Case(
        "other partitions, `day=01` and `day=02`",
        *(data_file("day=01", 1, OLDER), data_file("day=02", 2, NEWER)),
        is_conflict=False,
    ),
    Case(
        "one file group in `day=01`", *(data_file("day=01", 1, OLDER), data_file("day=01", 1, NEWER)), is_conflict=True
    ),
    Case(
        "other partitions, `event_date=2026-01-01` and `event_date=2026-01-02`",
        *(data_file("event_date=2026-01-01", 1, OLDER), data_file("event_date=2026-01-02", 2, NEWER)),
        is_conflict=False,
    ),
)


def findings(ground: Ground) -> Iterator[Finding]:
    if ground.has_hudi:
        yield from (_hudi(ground, case) for case in CASES)
    yield anyio.run(_ours, ground.table("partitions"), False, backend="trio")
    yield anyio.run(_ours, ground.table("partitions"), True, backend="trio")


def _hudi(ground: Ground, case: Case) -> Finding:
    table = make_table(ground.table("partitions"))
    leave_older(table, case.older)
    side = ground.hudi(*DETECTION, told="early conflict detection")
    with side.server(table) as server:
        found, asked = refused(server, case.newer, LOOKS)
    seen = f"{found} of {asked} markers of the newer writer answered `false`"
    right = bool(found) == case.is_conflict
    return Finding(
        trial="partitions",
        side=side.title,
        tried=f"{case.told}: the older writer's marker is stored and its heartbeat fresh; a look every {PERIOD_MS} ms, "
        f"{LOOKS} times",
        shown="no" if right else "yes",
        seen=seen + (", as is right" if right else ", which is wrong"),
        counts={"asked": asked, "refused": found},
    )


def leave_older(table: Path, path: str) -> None:
    """What another writer's server, and its heartbeat, have stored."""
    folder = stored.folder(table, OLDER)
    folder.mkdir(parents=True)
    (folder / "MARKERS.type").write_text("TIMELINE_SERVER_BASED")
    (folder / "MARKERS0").write_text(f"{stored.line(path)}\n")
    heartbeats = table / ".hoodie" / ".heartbeat"
    heartbeats.mkdir()
    (heartbeats / OLDER).touch()


def refused(server: HudiServer, path: str, looks: int) -> tuple[int, int]:
    """Of how many markers: once, and then once each period, another file of the same file group."""
    asked = server.instant(NEWER)
    answers = []
    for number in range(looks + 1):
        answers.append(asked.create(path.replace("-0-0_", f"-0-{number}_"), early=True))
        threading.Event().wait(PERIOD_MS / 1000)
    asked.close()
    return answers.count(False), len(answers)


async def _ours(table: Path, is_conflict: bool) -> Finding:
    """Both begin before either commits."""
    make = {"schema": SCHEMA, "mode": "overwrite", "partition_by": ("event_date",), "partition_overwrite": "dynamic"}
    dates = ("2026-01-01", "2026-01-01" if is_conflict else "2026-01-02")
    opened, conflicts = open_table(table), 0
    async with opened.write(**make) as older, opened.write(**make) as newer:  # type: ignore[arg-type]
        await write_rows(older, dates[0])
        try:
            await write_rows(newer, dates[1])
        except ConflictError:
            conflicts += 1
    shown: Shown = "no" if bool(conflicts) == is_conflict else "yes"
    return Finding(
        trial="partitions",
        side="Tallymark, which looks at the commit",
        tried=f"two writers at once overwrite `event_date={dates[0]}` and `event_date={dates[1]}`",
        shown=shown,
        seen=f"{2 - conflicts} committed, {conflicts} refused as conflicts"
        + (", as is right" if shown == "no" else ""),
        counts={"asked": 2, "refused": conflicts},
    )


TRIAL = Trial(
    "partitions",
    "Early conflict detection cuts what it compares at the first `_`: of two writers to other partitions the newer is "
    "refused where partitions are called like `event_date=...`.",
    findings,
)
