"""Plans of the planner that jobs use, in arithmetic, and the tables of the question ``sizing``."""

import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from tallymark.bench.results import Chart, Table, column, percent, seconds, size
from tallymark.bench.sizing import shapes
from tallymark.bench.sizing.figures import Figures, figures
from tallymark.bench.sizing.fill import BAR_BYTES, FILE_BYTES, measure_fills
from tallymark.bench.sizing.frontier import cheapest, curve, fewest
from tallymark.bench.sizing.replay import planned, replay
from tallymark.bench.sizing.shape import Shape
from tallymark.bench.sizing.written import Asked, written
from tallymark.engine.settings import SizingSettings
from tallymark.engine.sizing.planning import plan
from tallymark.engine.sizing.profile import IncomingRows, WorkloadProfile
from tallymark.engine.timeline.entry import DataFile

BUDGETS = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 100.0)

BARRED_BUDGETS = (2.0, 4.0, 8.0, 16.0)
"""Budgets at which the policy is compared with the exact solver."""

FRONTIER_BAR = 1.1
"""Files and bytes written over those of the exact solver."""

TIMES, TIMES_QUICK = 5, 3
"""Loads of a whole shape: the first shows what is estimated, the third what was learned."""

PLAN_FILES, PLAN_PARTITIONS, PLAN_BAR_S = 1_000_000, 10_000, 2.0
"""Of the table whose plan is timed."""

FILE_STEPS = 97
"""Sizes of its files: some can be filled, some cannot."""

METHOD = """\
Plans: those of the planner that jobs use; each planned file becomes as large as its rows make it (up to 1.125 times the
maximum, and beyond that another file), and nothing is written. The minimum is what the bytes of each partition need in
files of the maximum. Error: |size - maximum| over the maximum, 95th percentile of the files that the third commit and
later ones wrote, without each commit's last of a partition. Rewritten: bytes of small files that were written again,
per byte inserted. Without sizing each task writes a file in every partition, and rolls at the maximum.
Written: the same shapes, smaller, appended by Spark to a local disk, one append of each side in turn."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """A way of sizing; without a name no file is sized."""

    title: str
    name: str | None = None
    budget: float | None = None

    def settings(self, shape: Shape) -> SizingSettings | None:
        if self.name is None:
            return None
        return SizingSettings(
            max_file_bytes=shape.max_file_bytes,
            small_file_bytes=shape.small_file_bytes,
            policy="hudi" if self.name == "hudi" else "balanced",
            rewrite_budget=SizingSettings().rewrite_budget if self.budget is None else self.budget,
        )


BALANCED = Policy(title='policy "balanced", default budget', name="balanced")
HUDI = Policy(title='policy "hudi"', name="hudi")
PLAIN = Policy(title="no sizing")
POLICIES = (BALANCED, HUDI, PLAIN)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExampleRow:
    title: str = column("")
    filled: str = column("filled")
    new: str = column("new")
    is_as_published: bool = column("as published")


@dataclass(frozen=True, slots=True, kw_only=True)
class FrontierRow:
    title: str = column("")
    files: float = column("files", lambda value: f"{value:.4g}")
    fewest_files: int = column("fewest, no more bytes")
    rewritten: float = column("rewritten")
    least_rewritten: float = column("least, as many files")
    bytes_over_least: float = column("bytes over that")
    is_in_bar: bool | None = column("in the bar")
    kind: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanRow:
    title: str = column("")
    first_files: int | None = column("files of the first")
    files: int = column("files")
    minimum: int = column("minimum")
    small_share: float = column("small files", percent)
    error_p95: float | None = column("error, from the third", percent)
    largest: float = column("largest")
    rewritten: float = column("rewritten")
    figures: dict[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class SpeedRow:
    title: str = column("")
    files: int = column("files")
    partitions: int = column("partitions")
    planned: int = column("planned files")
    best_s: float = column("best", seconds)
    samples_s: tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FillRow:
    rows: str = column("")
    old_bytes: int = column("the file", size)
    new_bytes: int = column("with the new rows", size)
    before_bytes: int = column("before the task", size)
    peak_bytes: int = column("peak", size)
    is_in_bar: bool = column("in the bar")


def tables(
    progress: Callable[[str], None], *, scale: float = 1.0, times: int = TIMES, asked: Asked | None = None
) -> Iterator[Table]:
    """``scale``: times as many appends, and files of the table whose plan is timed. ``asked``: what Spark writes."""
    progress("sizing: plans")
    yield Table(
        title="the published example: incoming rows per planned file", rows=[_example(BALANCED), _example(HUDI)]
    )
    yield from _frontier(max(2, round(200 * scale)), max(1, round(50 * scale)))
    for shape in (shapes.example(), shapes.appends(), shapes.iceberg(), shapes.drift("longer")):
        rows = [plan_row(policy, shape.at_once(times), shape.at_once(1)) for policy in POLICIES]
        yield Table(title=f"whole loads: {shape.label}", rows=rows)
    for shape in (shapes.iceberg(loads=times), *map(shapes.drift, shapes.DRIFTS)):
        rows = [plan_row(policy, shape) for policy in POLICIES]
        yield Table(title=f"as it arrives: {shape.label}", rows=rows)
    progress("sizing: the time of a plan")
    speeds = [_speed(policy, scale) for policy in (BALANCED, HUDI)]
    yield Table(title=f"CPU time of a plan; bar: {seconds(PLAN_BAR_S)}", rows=speeds)
    if asked is not None:
        yield from written(asked, progress)
        yield fills(asked.parent, progress)


def plan_row(policy: Policy, shape: Shape, first: Shape | None = None) -> PlanRow:
    found = _figures(policy, shape)
    return PlanRow(
        title=policy.title,
        first_files=None if first is None else _figures(policy, first).files,
        files=found.files,
        minimum=found.minimum,
        small_share=found.small_share,
        error_p95=found.error_p95,
        largest=found.largest,
        rewritten=found.rewritten,
        figures=asdict(found),
    )


def _figures(policy: Policy, shape: Shape) -> Figures:
    return figures(shape, replay(shape, policy.settings(shape), plan))


def _example(policy: Policy) -> ExampleRow:
    shape = shapes.example()
    settings = policy.settings(shape)
    assert settings is not None
    files = planned(shape, settings, plan)
    rows, filled = [file.rows for file in files], sum(file.fill is not None for file in files)
    return ExampleRow(
        title=policy.title,
        filled=", ".join(f"{count:,}" for count in rows[:filled]),
        new=", ".join(f"{count:,}" for count in rows[filled:]),
        is_as_published=sorted(rows) == sorted(shapes.EXAMPLE_PLANNED),
    )


def _frontier(appends: int, partitions: int) -> Iterator[Table]:
    """Compare equal appends with the exact solver, which knows how many appends there will be."""
    shape = shapes.appends(appends, partitions)
    budgets = (Policy(title=f'policy "balanced", budget {each:g}', name="balanced", budget=each) for each in BUDGETS)
    rows = [_frontier_row(policy, shape, appends, partitions) for policy in (*budgets, HUDI, PLAIN)]
    exact = [
        FrontierRow(
            title=f"exact, {point.files} files",
            files=point.files,
            fewest_files=point.files,
            rewritten=point.rewritten,
            least_rewritten=point.rewritten,
            bytes_over_least=1.0,
            is_in_bar=None,
            kind="exact solver",
        )
        for point in curve(appends)
        if point.rewritten <= BUDGETS[-1]
    ]
    yield Table(title=f"{shape.label}: files per partition and bytes rewritten; bar: {FRONTIER_BAR:g}", rows=rows)
    chart = Chart(values=("files",), label="kind", x="rewritten", axis="bytes rewritten per byte inserted")
    yield Table(title=f"{shape.label}: files per partition", rows=[*rows, *exact], charts=(chart,))


def _frontier_row(policy: Policy, shape: Shape, appends: int, partitions: int) -> FrontierRow:
    found = _figures(policy, shape)
    files = found.files / partitions
    few, least = fewest(appends, found.rewritten).files, cheapest(appends, round(files)).rewritten
    over = (1 + found.rewritten) / (1 + least)
    return FrontierRow(
        title=policy.title,
        files=files,
        fewest_files=few,
        rewritten=found.rewritten,
        least_rewritten=least,
        bytes_over_least=over,
        is_in_bar=(files <= FRONTIER_BAR * few and over <= FRONTIER_BAR) if policy.budget in BARRED_BUDGETS else None,
        kind=policy.name or "no sizing",
    )


def _speed(policy: Policy, scale: float, rounds: int = 3) -> SpeedRow:
    """Measure the CPU of plans in this process."""
    files, partitions = max(1, round(PLAN_FILES * scale)), max(1, round(PLAN_PARTITIONS * scale))
    settings = SizingSettings(policy="hudi" if policy.name == "hudi" else "balanced")
    step = 2 * settings.small_file_bytes // FILE_STEPS
    sizes = (step * (1 + number % FILE_STEPS) for number in range(files))
    table = tuple(
        DataFile(f"p={number % partitions:05d}", f"{number:08d}_0_0.parquet", each // 100, each, 3 * each, each)
        for number, each in enumerate(sizes)
    )
    incoming = tuple(IncomingRows(f"p={number:05d}", 1_000_000, 300_000_000) for number in range(partitions))
    taken: list[float] = []
    for _ in range(rounds):
        started = time.process_time()
        count = len(plan(WorkloadProfile(incoming=incoming), table, settings).files)
        taken.append(time.process_time() - started)
    return SpeedRow(
        title=policy.title,
        files=files,
        partitions=partitions,
        planned=count,
        best_s=min(taken),
        samples_s=tuple(taken),
    )


def fills(parent: Path, progress: Callable[[str], None]) -> Table:
    rows = [
        FillRow(**asdict(each), is_in_bar=each.peak_bytes <= BAR_BYTES)
        for each in measure_fills(parent, progress=progress)
    ]
    return Table(title=f"memory of a task that fills a file of {size(FILE_BYTES)}; bar: {size(BAR_BYTES)}", rows=rows)
