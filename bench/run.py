"""The whole of ``python -m tallymark.bench backends``: what was asked, the places one after the other, and progress."""

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from tallymark.backends import StorageOptions
from tallymark.bench import places
from tallymark.bench.answer import Answer
from tallymark.bench.backends import measured
from tallymark.bench.case import CASES, QUICK, Case
from tallymark.bench.machine import Machine
from tallymark.bench.method import Method
from tallymark.bench.places import Place

SECONDS = 90.0
"""Of the whole run: long enough for intervals of some 10 us where a call takes 300 us, on two cores that are idle."""

SECONDS_QUICK = 10.0
ROUNDS_QUICK = 21

ROUNDS = 201


@dataclass(frozen=True, slots=True)
class Asked:
    urls: tuple[str, ...]
    """Empty: the places that need nothing."""
    options: StorageOptions
    cases: tuple[Case, ...]
    rounds: int
    seconds: float
    """Of the whole run, which may take longer where calls are slow."""

    @classmethod
    def of(
        cls, urls: Sequence[str], options: StorageOptions, *, seconds: float | None, rounds: int | None, quick: bool
    ) -> "Asked":
        return cls(
            urls=tuple(urls),
            options=options,
            cases=QUICK if quick else CASES,
            rounds=rounds or (ROUNDS_QUICK if quick else ROUNDS),
            seconds=seconds or (SECONDS_QUICK if quick else SECONDS),
        )


async def run(asked: Asked) -> Answer:
    """Measure on each place. Whatever ends it, nothing is left there."""
    began, machine = datetime.now(UTC), Machine.here()
    stores = [places.at(url, asked.options) for url in asked.urls] or places.usual()
    method = Method(round_count=asked.rounds, case_s=asked.seconds / len(stores) / len(asked.cases))
    sections = []
    with _progress(len(stores) * len(asked.cases)) as progress:
        for opening in stores:
            async with opening as found:
                progress.at(found)
                sections.append(await measured(found, asked.cases, method, done=progress.done))
    return Answer("backends", began, machine, method, tuple(sections))


class _Shown:
    """A line on stderr for whoever sits at the terminal."""

    def __init__(self, bars: Progress, count: int) -> None:
        self._bars = bars
        self._task = bars.add_task("", total=count)

    def at(self, found: Place) -> None:
        self._bars.update(self._task, description=f"{found.title} ({found.where})")

    def done(self, _case: Case) -> None:
        self._bars.advance(self._task)


@contextmanager
def _progress(count: int) -> Iterator[_Shown]:
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    page = Console(stderr=True)
    # Drawn between the samples only: its own thread would take its share of the machine.
    with Progress(*columns, console=page, transient=True, auto_refresh=False, disable=not sys.stderr.isatty()) as bars:
        yield _Shown(bars, count)
