"""A whole run of the question ``upserts``: per case a table of times and one of the engine's phases, then memory of a
task, and a table that is a hundred times as large.
"""

import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import median

from tallymark.bench.paired import Estimate, compare
from tallymark.bench.peers.writers import writer
from tallymark.bench.results import Chart, Table, column, number, seconds, size
from tallymark.bench.upserts.case import UpsertCase
from tallymark.bench.upserts.growth import grown
from tallymark.bench.upserts.memory import BAR_BYTES, tasks_memory
from tallymark.bench.upserts.step import APPEND, NAMES, ONE_ROW, OWN, Step, own_hands, steps, verdict
from tallymark.bench.writes.hands import Hands, SideFailed
from tallymark.bench.writes.order import Done
from tallymark.bench.writes.place import local
from tallymark.bench.writes.question import figure
from tallymark.bench.writes.rounds import RoundMethod, take_rounds
from tallymark.bench.writes.sides import crew

SPARK_MEMORY = "4g"

ENGINE_BAR = 1.3
"""Times the floor, its own lookup and its own append."""

Progress = Callable[[str], None]
Taken = Mapping[str, Sequence[Done]]
"""What the writes took, by side and step."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    cases: Sequence[UpsertCase]
    growth: tuple[UpsertCase, UpsertCase] | None
    memory_rows: int
    """Of the largest file whose rewriting is measured; 0: none is."""
    sides: Sequence[str]
    method: RoundMethod
    pythons: Mapping[str, str]
    parent: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class UpsertRow:
    side: str
    title: str = column("")
    wall_s: float = column("wall", seconds)
    cpu_s: float = column("CPU", seconds)
    jvm_s: float | None = column("JVM", seconds)
    python_s: float | None = column("Python", seconds)
    one_row_s: float | None = column("one row", seconds)
    net_s: float = column("net", seconds)
    of_floor: Estimate | None = column("net / floor", lambda share: f"{share.value:.2f}")
    bar: str | None = column("bar, net")
    of_bar: Estimate | None = column("of the bar (95 %)")
    is_in_bar: str | None = column("in it")
    writes: Mapping[str, object]
    """All of them, by step."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TakenRow:
    title: str = column("")
    written_bytes: float | None = column("written", size)
    read_bytes: float | None = column("read", size)
    requests: float | None = column("requests", number)
    peak_python_bytes: float | None = column("peak, Python", size)
    peak_jvm_bytes: float | None = column("peak, JVM", size)


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseRow:
    title: str = column("")
    keys_s: float = column("keys", seconds)
    lookup_s: float = column("lookup", seconds)
    route_s: float = column("plan and routing", seconds)
    write_s: float = column("merge and encoding", seconds)
    commit_s: float = column("commit", seconds)


def tables(asked: Asked, progress: Progress) -> Iterator[Table]:
    """Measure below a folder. Nothing remains there."""
    with ExitStack() as end:
        logs = Path(end.enter_context(tempfile.TemporaryDirectory(prefix="tallymark-bench-")))
        place = end.enter_context(local(asked.parent))
        sources = Path(place.url, "source")
        sparks = [side for side in asked.sides if side not in OWN]
        progress("upserts: starting a process for each side")
        roomy = replace(place, conf={**place.conf, "spark.driver.memory": SPARK_MEMORY})
        method, own_python = asked.method, sys.executable
        found = end.enter_context(
            crew(roomy, sparks, cores=method.cores, pythons=asked.pythons, own_python=own_python, logs=logs)
        )
        hands = {side: each for side, each in found.hands.items() if side not in found.absent}
        hands |= {side: end.enter_context(own_hands(side, logs)) for side in OWN}
        for case in asked.cases:
            case.write(sources)
            sides = {side: hands[side] for side in asked.sides if side in hands and side not in case.absent}
            absent = {_title(side): reason for side, reason in found.absent.items()}
            taken = _taken(case, sides, sources, Path(place.url, "tables"), method, absent, progress)
            shutil.rmtree(sources)
            yield from shown(case, taken, absent)
        if asked.memory_rows:
            rows = tasks_memory(Path(place.url), asked.memory_rows, progress)
            title = f"memory of a task that rewrites a file; bar: {BAR_BYTES >> 20} MiB for a file of 120 MiB"
            yield Table(title=title, rows=rows, charts=(Chart(values=("peak_bytes",), axis="bytes"),))
        if asked.growth is not None:
            yield grown(asked.growth, hands["engine"], Path(place.url), method, progress)


def _taken(
    case: UpsertCase,
    hands: Mapping[str, Hands],
    sources: Path,
    tables: Path,
    method: RoundMethod,
    absent: dict[str, str],
    progress: Progress,
) -> Taken:
    """Measure all steps in turn. A side that cannot do one of its own is ``absent``."""
    wanted: list[Step] = []

    def lost(name: str, error: SideFailed) -> None:
        absent[_title(name)] = str(error)

    for side, its in hands.items():
        progress(f"{case.label}: {side}")
        try:
            wanted += steps(case, its, sources, tables / side)
        except SideFailed as error:
            lost(side, error)
    try:
        if not wanted:
            return {}
        return take_rounds(wanted, method, done=lambda name: progress(f"{case.label}: {name}"), lost=lost)
    finally:
        shutil.rmtree(tables)


def _title(name: str) -> str:
    side, _, step = name.partition(": ")
    if side in OWN:
        title = OWN[side]
    else:
        title = writer(side).title + "".join(f" on Spark {spark}" for spark in writer(side).sparks)
    return f"{title}{step and f', {step}'}"


def shown(case: UpsertCase, taken: Taken, absent: Mapping[str, str]) -> Iterator[Table]:
    """Yield the tables of what each side's writes took, by side and step."""
    sides = [name for name in NAMES if name in taken and _title(name) not in absent]
    rows = [_row(case, side, taken) for side in sides]
    charts = (Chart(values=("cpu_s", "net_s", "wall_s"), axis="seconds"),)
    yield Table(title=case.label, rows=rows, charts=charts, absent=absent)
    figures = ("written_bytes", "read_bytes", "requests", "peak_python_bytes", "peak_jvm_bytes")
    takes = [TakenRow(title=_title(side), **{name: figure(taken[side], name) for name in figures}) for side in sides]
    yield Table(title=f"{case.name}: bytes, requests, memory of a process", rows=takes)
    phases = [_phases(name, its) for name, its in taken.items() if name.startswith("engine")]
    yield Table(title=f"{case.name}: CPU of the engine by phase", rows=phases)


def _row(case: UpsertCase, side: str, taken: Taken) -> UpsertRow:
    done, net, floor, one = taken[side], _net(side, taken), _cpu("floor", taken), _cpu(f"{side}: {ONE_ROW}", taken)
    bar, of_bar = _bar(case, side, taken)
    has_spark = side not in OWN
    return UpsertRow(
        side=side,
        title=_title(side),
        wall_s=median(each.wall_s for each in done),
        cpu_s=median(_cpu(side, taken)),
        jvm_s=median(each.spent.jvm_s for each in done) if has_spark else None,
        python_s=median(each.spent.python_s + each.spent.driver_s for each in done) if has_spark else None,
        one_row_s=median(one) if one else None,
        net_s=median(net),
        of_floor=compare(net, floor).ratio if floor and side != "floor" else None,
        bar=bar,
        of_bar=of_bar,
        is_in_bar=verdict(of_bar),
        writes={name: [asdict(each) for each in its] for name, its in taken.items() if name.partition(":")[0] == side},
    )


def _bar(case: UpsertCase, side: str, taken: Taken) -> tuple[str | None, Estimate | None]:
    """Return the bar that the side is held to, or ours beside it, and the share of it that is taken."""
    floor, net, ours = _cpu("floor", taken), _net(side, taken), _net("ours", taken)
    appended = _net(f"{side}: {APPEND}", taken) or [0.0] * len(floor)
    if side == "ours" and floor:
        bar = [case.floors * least + case.appends * own for least, own in zip(floor, appended, strict=True)]
        return f"{case.floors:g} floors + {case.appends:g} appends: {seconds(median(bar))}", _share(net, bar)
    if side == "engine" and floor:
        lookups = [float(each.figures.get("lookup_s", 0.0)) for each in taken[side]]
        bar = [ENGINE_BAR * sum(parts) for parts in zip(floor, lookups, appended, strict=True)]
        return f"{ENGINE_BAR:g} (floor, lookup, append): {seconds(median(bar))}", _share(net, bar)
    if side not in OWN and ours:
        share = case.delta_max if side == "delta" else case.hudi_max
        return f"Tallymark: {share:g} of it", _share(ours, [share * each for each in net])
    return None, None


def _share(net: Sequence[float], bar: Sequence[float]) -> Estimate | None:
    """Return the share of the bar; None where fixed costs leave nothing of it."""
    return compare(net, bar).ratio if min(bar) > 0 else None


def _net(name: str, taken: Taken) -> list[float]:
    """Return the CPU of each round's write without that of the same write of one row."""
    one, found = _cpu(f"{name}: {ONE_ROW}", taken), _cpu(name, taken)
    return [all_ - fixed for all_, fixed in zip(found, one, strict=True)] if one and found else found


def _cpu(name: str, taken: Taken) -> list[float]:
    return [each.cpu_s for each in taken.get(name, ())]


def _phases(name: str, done: Sequence[Done]) -> PhaseRow:
    phases = {each: figure(done, each) or 0.0 for each in ("keys_s", "lookup_s", "route_s", "write_s", "commit_s")}
    return PhaseRow(title=name.partition(": ")[2] or "upsert", **phases)
