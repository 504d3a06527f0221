"""A whole run of the question ``writes``: a table of times, one of markers and one of requests per case and place."""

import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median

from tallymark.bench.paired import Estimate, compare
from tallymark.bench.peers.writers import writer
from tallymark.bench.results import Chart, Table, column, number, seconds
from tallymark.bench.writes.case import WriteCase
from tallymark.bench.writes.hands import SideFailed
from tallymark.bench.writes.order import Done
from tallymark.bench.writes.place import WritePlace
from tallymark.bench.writes.published import PUBLISHED
from tallymark.bench.writes.rounds import RoundMethod, take_rounds
from tallymark.bench.writes.sides import Crew, Turn, crew

Progress = Callable[[str], None]

REQUESTS = ("put", "copy", "get", "head", "list", "delete")
"""As the S3 stand-in counts them, over all that the side does in a write."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    places: Sequence[AbstractContextManager[WritePlace]]
    cases: Sequence[WriteCase]
    sides: Sequence[str]
    method: RoundMethod
    pythons: Mapping[str, str]
    """Of sides that need another Spark than ours."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteRow:
    side: str
    title: str = column("")
    wall_s: float = column("wall", seconds)
    wall_ratio: Estimate | None = column("Tallymark / it (95 %)")
    cpu_s: float = column("CPU", seconds)
    cpu_ratio: Estimate | None = column("Tallymark / it (95 %)")
    jvm_s: float = column("JVM", seconds)
    python_s: float = column("Python", seconds)
    commit_s: float | None = column("commit", seconds)
    after_commit_s: float | None = column("cleaning", seconds)
    writes: list[dict[str, object]]


@dataclass(frozen=True, slots=True, kw_only=True)
class MarkerRow:
    title: str = column("")
    markers: float | None = column("markers", number)
    marker_wait_s: float | None = column("tasks' wait, added up", seconds)
    marker_objects: float | None = column("objects", number)
    deletion: str | None = column("deletion")
    result: str | None = column("result")


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestRow:
    title: str = column("")
    put: float = column("put", number)
    copy: float = column("copy", number)
    get: float = column("get", number)
    head: float = column("head", number)
    list: float = column("list", number)
    delete: float = column("delete", number)
    per_file: float = column("per file", lambda value: f"{value:.1f}")


def tables(asked: Asked, progress: Progress) -> Iterator[Table]:
    """Measure on each place. Nothing remains there."""
    with tempfile.TemporaryDirectory(prefix="tallymark-bench-") as name:
        folder = Path(name)
        for case in asked.cases:
            case.data.write(folder / "source" / case.name)
        for place_number, opening in enumerate(asked.places):
            logs = folder / str(place_number)
            logs.mkdir()
            with opening as place:
                yield from _on(place, asked, folder / "source", logs, progress)


def _on(place: WritePlace, asked: Asked, sources: Path, logs: Path, progress: Progress) -> Iterator[Table]:
    progress(f"{place.title}: starting a Spark session for each side")
    cores = asked.method.cores
    wanted = [
        name for name in asked.sides if any(writer(name).absence(case, place.kind) is None for case in asked.cases)
    ]
    with crew(place, wanted, cores=cores, pythons=asked.pythons, own_python=sys.executable, logs=logs) as found:
        for case in asked.cases:
            yield from _case(found, case, asked, sources / case.name, progress)


def _case(found: Crew, case: WriteCase, asked: Asked, source: Path, progress: Progress) -> Iterator[Table]:
    place, absent = found.place, dict[str, str]()
    label = f"{place.title}: {case.label}"
    turns = []
    for name in asked.sides:
        progress(f"{label}: {name}")
        reason = writer(name).absence(case, place.kind) or found.absent.get(name)
        if reason is None:
            turn = Turn(found.hands[name], place, case, source=source, codec=asked.method.codec)
            reason = found.lost(name, turn.try_once)
        if reason is None:
            turns.append(turn)
        else:
            absent[writer(name).title] = reason

    def lost(name: str, error: SideFailed) -> None:
        absent[found.title(name)] = found.absent[name] = str(error)

    done = take_rounds(turns, asked.method, done=lambda name: progress(f"{label}: {name}"), lost=lost)
    for turn in turns:
        if turn.name in done and (wrong := turn.wrong()) is not None:
            del done[turn.name]
            absent[found.title(turn.name)] = wrong
        turn.remove()
    by_title = {found.title(name): (name, its) for name, its in done.items()}
    yield from shown(case, f"{case.label}; {place.title} ({place.where})", by_title, absent)


def shown(
    case: WriteCase, title: str, done: Mapping[str, tuple[str, tuple[Done, ...]]], absent: Mapping[str, str]
) -> Iterator[Table]:
    """Yield the tables of what each side's writes took, by its title."""
    ours = next((its for name, its in done.values() if name == "ours"), None)
    rows = [write_row(title, name, its, ours) for title, (name, its) in done.items()]
    chart = Chart(values=("wall_s", "cpu_s"), axis="seconds")
    yield Table(title=title, rows=rows, charts=(chart,), absent=absent)
    markers = [
        MarkerRow(
            title=title,
            markers=figure(its, "markers"),
            marker_wait_s=figure(its, "marker_wait_s"),
            marker_objects=figure(its, "marker_objects"),
            deletion=None if (took := figure(its, "marker_deletion_s")) is None else seconds(took),
            result=None,
        )
        for title, (_, its) in done.items()
        if figure(its, "marker_objects") is not None or figure(its, "markers") is not None
    ]
    others = [
        MarkerRow(
            title=f"published, not measured here: {line.who}: {line.what}",
            markers=None,
            marker_wait_s=None,
            marker_objects=line.marker_objects,
            deletion=line.deletion or None,
            result=line.said or None,
        )
        for line in PUBLISHED[case.name]
    ]
    yield Table(title="markers", rows=[*markers, *others])
    requests = [request_row(title, its, case.files) for title, (_, its) in done.items()]
    yield Table(title=f"requests, for {case.files:,} files", rows=[row for row in requests if row.per_file])


def write_row(title: str, name: str, done: Sequence[Done], ours: Sequence[Done] | None) -> WriteRow:
    def ratio(reading: Callable[[Done], float]) -> Estimate | None:
        if ours is None or name == "ours":
            return None
        return compare([*map(reading, ours)], [*map(reading, done)]).ratio

    return WriteRow(
        side=name,
        title=title,
        wall_s=median(each.wall_s for each in done),
        wall_ratio=ratio(lambda each: each.wall_s),
        cpu_s=median(each.cpu_s for each in done),
        cpu_ratio=ratio(lambda each: each.cpu_s),
        jvm_s=median(each.spent.jvm_s + each.spent.forks_s for each in done),
        python_s=median(each.spent.python_s + each.spent.driver_s for each in done),
        commit_s=figure(done, "commit_s"),
        after_commit_s=figure(done, "after_commit_s"),
        writes=[asdict(each) for each in done],
    )


def request_row(title: str, done: Sequence[Done], files: int) -> RequestRow:
    counts = {kind: figure(done, f"requests_{kind}") or 0.0 for kind in REQUESTS}
    return RequestRow(title=title, per_file=sum(counts.values()) / files, **counts)


def figure(done: Sequence[Done], name: str) -> float | None:
    """Return the median of a figure that the writer reports, where it is a number."""
    found = [value for each in done if isinstance(value := each.figures.get(name), int | float)]
    return median(found) if found else None
