"""The whole of ``python -m tallymark.bench writes``."""

import os
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from tallymark.bench.machine import Machine
from tallymark.bench.peers.writers import writer
from tallymark.bench.writes.answer import WriteAnswer, WriteRow, WriteSection
from tallymark.bench.writes.case import WriteCase
from tallymark.bench.writes.hands import SideFailed
from tallymark.bench.writes.place import WritePlace
from tallymark.bench.writes.published import PUBLISHED
from tallymark.bench.writes.rounds import RoundMethod, take_rounds
from tallymark.bench.writes.sides import Crew, Turn, crew


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    places: Sequence[AbstractContextManager[WritePlace]]
    cases: Sequence[WriteCase]
    sides: Sequence[str]
    method: RoundMethod
    pythons: Mapping[str, str]
    """Of sides that need another Spark than ours."""


def run(asked: Asked, *, tell: Callable[[str], None] = lambda text: None) -> WriteAnswer:
    """Measure on each place. Whatever ends it, nothing is left there."""
    began, machine = datetime.now(UTC), Machine.here()
    sections = []
    with tempfile.TemporaryDirectory(prefix="tallymark-bench-") as name:
        folder = Path(name)
        for case in asked.cases:
            case.data.write(folder / "source" / case.name)
        for number, opening in enumerate(asked.places):
            logs = folder / str(number)
            logs.mkdir()
            with opening as place:
                sections += _on(place, asked, folder / "source", logs, tell)
    return WriteAnswer(began, machine, asked.method, tuple(sections))


def _on(place: WritePlace, asked: Asked, sources: Path, logs: Path, tell: Callable[[str], None]) -> list[WriteSection]:
    tell(f"{place.title}: starting a Spark session for each side")
    cores = asked.method.cores
    wanted = [name for name in asked.sides if any(_reason(name, place, case) is None for case in asked.cases)]
    with crew(place, wanted, cores=cores, pythons=asked.pythons, own_python=sys.executable, logs=logs) as found:
        return [_section(found, case, asked, sources / case.name, tell) for case in asked.cases]


def _reason(name: str, place: WritePlace, case: WriteCase) -> str | None:
    return writer(name).absence(case, place.kind)


def _section(found: Crew, case: WriteCase, asked: Asked, source: Path, tell: Callable[[str], None]) -> WriteSection:
    place, codec = found.place, asked.method.codec
    label = f"{place.title}: {case.label}"
    absent: dict[str, str] = {}
    turns = []
    for name in asked.sides:
        tell(f"{label}: {name}")
        reason = _reason(name, place, case) or found.absent.get(name)
        if reason is None:
            turn = Turn(found.hands[name], place, case, source=source, codec=codec)
            reason = found.lost(name, turn.try_once)
        if reason is None:
            turns.append(turn)
        else:
            absent[writer(name).title] = reason

    def lost(name: str, error: SideFailed) -> None:
        absent[found.title(name)] = found.absent[name] = str(error)

    done = take_rounds(turns, asked.method, done=lambda name: tell(f"{label}: {name}"), lost=lost)
    for turn in turns:
        if turn.name in done and (wrong := turn.wrong()) is not None:
            del done[turn.name]
            absent[found.title(turn.name)] = wrong
        turn.remove()
    return WriteSection(
        case=case.name,
        label=case.label,
        place=place.title,
        where=place.where,
        files=case.files,
        rows=tuple(
            WriteRow(side=turn.name, title=found.title(turn.name), done=done[turn.name])
            for turn in turns
            if turn.name in done
        ),
        absent=absent,
        published=PUBLISHED[case.name],
    )


def cores() -> int:
    return len(os.sched_getaffinity(0))
