"""The whole of ``python -m tallymark.bench markers``: beside each other on a near store, then on one that is far."""

import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from subprocess import SubprocessError

from tallymark.backends import StorageOptions
from tallymark.backends.errors import TallymarkError
from tallymark.bench.machine import Machine
from tallymark.bench.markers.alone import alone
from tallymark.bench.markers.answer import Beside, JobRow, MarkersAnswer
from tallymark.bench.markers.beside import beside, published
from tallymark.bench.markers.effort import Effort
from tallymark.bench.markers.hudi_settings import Search
from tallymark.bench.markers.hudi_side import HudiSide, Tuning
from tallymark.bench.markers.paced import paced
from tallymark.bench.markers.parts import PARTS
from tallymark.bench.markers.place import MarkerPlace, at, far, near
from tallymark.bench.markers.served_side import ServedSide
from tallymark.bench.markers.side import Side
from tallymark.bench.markers.task_side import TaskSide

Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    parts: Sequence[str] = PARTS
    effort: Effort = field(default_factory=Effort)
    store: str | None = None
    """A URL; None: the temporary directory, and S3 at the harness's own server."""
    options: StorageOptions = field(default_factory=StorageOptions)
    latency_s: float = 0.030
    puts_per_s: float = 3500.0

    def near(self) -> AbstractContextManager[MarkerPlace]:
        return at(self.store, self.options) if self.store else near(Path(tempfile.gettempdir()))

    def far(self) -> AbstractContextManager[MarkerPlace]:
        return at(self.store, self.options) if self.store else far(self.latency_s, self.puts_per_s)


def run(asked: Asked, *, tell: Tell = lambda text: None) -> MarkersAnswer:
    """Whatever ends it, nothing is left where it was measured."""
    began, machine = datetime.now(UTC), Machine.here()
    absent: dict[str, str] = {}
    trials: dict[str, float] = {}
    found, where = Beside(loads=(), jobs=()), ""
    jobs: tuple[JobRow, ...] = ()
    distant = ""
    with tempfile.TemporaryDirectory(prefix="tallymark-bench-") as name:
        logs = Path(name)
        if "beside" in asked.parts:
            with asked.near() as place:
                where = place.where
                sides = [*_ours(place, logs)]
                if place.folder is None:
                    absent["Hudi's timeline server"] = "it is asked for markers in folders of this machine only"
                else:
                    search = Search(place.folder, logs, asked.effort, tell)
                    sides += _hudis(search, absent)
                    trials = {search.side(tuning).title: mean_s for tuning, mean_s in search.mean_s.items()}
                found = beside(sides, asked.effort, logs, absent, tell)
        if "slow" in asked.parts:
            with asked.near() as place:
                where = place.where
                rows = paced(_side_by_side(place, logs), asked.effort, logs, absent, tell)
                found = replace(found, paced_load=str(asked.effort.paced), paced=rows)
        if "published" in asked.parts:
            with asked.far() as place:
                distant = place.where
                jobs = tuple(published(_published(place, logs), asked.effort, logs, tell))
    by_itself = alone(asked.parts, asked.effort, tell)
    return MarkersAnswer(
        began=began,
        machine=machine,
        effort=asked.effort,
        where=where,
        beside=found,
        trials=trials,
        far=distant,
        published=jobs,
        alone=by_itself,
        absent=absent,
        load_after=os.getloadavg()[0],
    )


def _ours(place: MarkerPlace, logs: Path) -> Iterator[Side]:
    yield ServedSide(place=place, logs=logs)
    yield TaskSide(mark="inside", place=place)
    yield TaskSide(mark="direct", place=place)


def _published(place: MarkerPlace, logs: Path) -> Sequence[Side]:
    return [ServedSide(place=place, logs=logs), TaskSide(mark="direct", place=place)]


def _side_by_side(place: MarkerPlace, logs: Path) -> Iterator[Side]:
    """Ours, and Hudi's server as it is by itself."""
    yield ServedSide(place=place, logs=logs)
    if place.folder is not None:
        yield HudiSide(folder=place.folder / "hudi", logs=logs)


def _hudis(search: Search, absent: dict[str, str]) -> Iterator[Side]:
    """Its server as it is by itself, and at the best of the settings that are tried."""
    try:
        best = search.best()
    except (TallymarkError, OSError, SubprocessError) as error:
        absent["Hudi's timeline server"] = str(error).strip().partition("\n")[0]
        return
    for tuning in dict.fromkeys((Tuning(), best)):
        yield search.side(tuning)
