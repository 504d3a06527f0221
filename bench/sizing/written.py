"""The shapes of ``sizing`` appended by Spark: what each side leaves, writes and takes."""

import shutil
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import unquote, urlsplit

from tallymark.bench.method import rotated
from tallymark.bench.peers.writers import writer
from tallymark.bench.results import Table, column, percent, seconds, size
from tallymark.bench.sizing.figures import FROM_COMMIT, minimum, percentile
from tallymark.bench.sizing.written_case import WrittenCase
from tallymark.bench.writes.hands import Hands, SideFailed
from tallymark.bench.writes.order import PLAN_ERROR, Done, FileSizes, Order, Policy
from tallymark.bench.writes.place import local
from tallymark.bench.writes.sides import Crew, crew


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenSide:
    name: str
    hands: str
    """The writer, and the worker that has it."""
    policy: Policy = "off"
    """Of our own; other writers have their own way."""

    @property
    def title(self) -> str:
        if self.hands != "ours":
            return writer(self.hands).title
        return "Tallymark, no sizing" if self.policy == "off" else f'Tallymark, policy "{self.policy}"'


SIDES = (
    WrittenSide(name="balanced", hands="ours", policy="balanced"),
    WrittenSide(name="hudi-policy", hands="ours", policy="hudi"),
    WrittenSide(name="off", hands="ours"),
    WrittenSide(name="plain", hands="v1"),
    WrittenSide(name="hudi", hands="hudi"),
)

NAMES = tuple(side.name for side in SIDES)


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    cases: Sequence[WrittenCase]
    sides: Sequence[WrittenSide]
    cores: int
    pythons: Mapping[str, str]
    parent: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenRow:
    title: str = column("")
    files: int = column("files")
    minimum: int = column("minimum")
    small_share: float = column("small files", percent)
    error_p95: float | None = column("off the maximum", percent)
    plan_error_p95: float | None = column("off the plan", percent)
    largest: float = column("largest")
    left_bytes: int = column("left", size)
    written_over_left: float = column("written / left")
    wall_s: float = column("wall", seconds)
    cpu_s: float = column("CPU", seconds)
    peak_python_bytes: float = column("peak, Python", size)
    peak_jvm_bytes: float = column("peak, JVM", size)


def written(asked: Asked, progress: Callable[[str], None]) -> Iterator[Table]:
    """Measure below a folder. Nothing remains there."""
    names = [*dict.fromkeys(side.hands for side in asked.sides)]
    with tempfile.TemporaryDirectory(prefix="tallymark-bench-") as name, local(asked.parent) as place:
        logs = Path(name)
        progress("sizing: starting a Spark session for each writer")
        with crew(
            place, names, cores=asked.cores, pythons=asked.pythons, own_python=sys.executable, logs=logs
        ) as found:
            for case in asked.cases:
                yield _table(found, case, asked.sides, logs / case.name, progress)


def _table(
    found: Crew, case: WrittenCase, sides: Sequence[WrittenSide], sources: Path, progress: Callable[[str], None]
) -> Table:
    absent = {side.title: found.absent[side.hands] for side in sides if side.hands in found.absent}
    turns = [
        Turn(side, found.hands[side.hands], case, Path(found.place.url, f"{case.name}-{side.name}"))
        for side in sides
        if side.hands not in found.absent
    ]
    left = [*turns]
    for number, load in enumerate((case.loads[0], *case.loads)):
        source = sources / str(number)
        load.write(source, seed=number)
        for turn in rotated(left, number) if left else ():
            progress(f"{case.label}: append {number} of {len(case.loads)}, {turn.side.name}")
            try:
                turn.append(source, is_warm_up=number == 0)
            except SideFailed as error:
                absent[turn.side.title] = str(error)
                left.remove(turn)
        shutil.rmtree(source)
    rows = []
    for turn in left:
        try:
            rows.append(turn.row())
        except SideFailed as error:
            absent[turn.side.title] = str(error)
    for turn in turns:
        turn.remove()
    title = f"written: {case.label}; files of at most {size(case.max_file_bytes)}"
    return Table(title=title, rows=rows, absent=absent)


@dataclass(slots=True)
class Turn:
    """A side in a case: one append after the other to its own table."""

    side: WrittenSide
    hands: Hands
    case: WrittenCase
    target: Path
    done: list[Done] = field(default_factory=list)
    landed: list[tuple[int, str, int]] = field(default_factory=list)
    """Append, partition and bytes of each data file that was new after it."""
    known: set[Path] = field(default_factory=set)

    def append(self, source: Path, *, is_warm_up: bool) -> None:
        """Append to the table, or to another one that is removed. Raises SideFailed."""
        target = self.target.with_name(f"{self.target.name}-warm-up") if is_warm_up else self.target
        sizes = FileSizes(
            policy=self.side.policy,
            max_file_bytes=self.case.max_file_bytes,
            small_file_bytes=self.case.small_file_bytes,
        )
        order = Order(source=source.as_uri(), target=str(target), mode="append", partition_by=("p",), sizes=sizes)
        try:
            done = self.hands.write(order)
        finally:
            if is_warm_up:
                shutil.rmtree(target, ignore_errors=True)
        if not is_warm_up:
            self.done.append(done)
            self.look()

    def look(self) -> None:
        for path in self.target.rglob("*.parquet"):
            inside = path.relative_to(self.target)
            if path not in self.known and not inside.name.startswith(".") and inside.parts[0][0] not in "._":
                self.known.add(path)
                self.landed.append((len(self.done), str(inside.parent), path.stat().st_size))

    def row(self) -> WrittenRow:
        """Return what the side's readers see. Raises SideFailed, also where they do not see every row."""
        rows, urls = self.hands.look(str(self.target))
        expected = sum(load.row_count for load in self.case.loads)
        if rows != expected:
            raise SideFailed(f"it was to leave {expected:,} rows, and its readers see {rows:,}")
        paths = [Path(unquote(urlsplit(url).path)) for url in urls]
        files = [(str(path.parent), path.stat().st_size) for path in paths]
        left = sum(each for _, each in files)
        return WrittenRow(
            title=self.side.title,
            files=len(files),
            minimum=minimum(files, self.case.max_file_bytes),
            small_share=sum(each < self.case.small_file_bytes for _, each in files) / len(files),
            error_p95=error_p95(self.landed, self.case.max_file_bytes),
            plan_error_p95=max(
                (
                    float(done.figures[PLAN_ERROR])
                    for done in self.done[FROM_COMMIT - 1 :]
                    if PLAN_ERROR in done.figures
                ),
                default=None,
            ),
            largest=max(each for _, _, each in self.landed) / self.case.max_file_bytes,
            left_bytes=left,
            written_over_left=sum(each for _, _, each in self.landed) / left,
            wall_s=sum(done.wall_s for done in self.done),
            cpu_s=sum(done.cpu_s for done in self.done),
            peak_python_bytes=max(float(done.figures["peak_python_bytes"]) for done in self.done),
            peak_jvm_bytes=max(float(done.figures["peak_jvm_bytes"]) for done in self.done),
        )

    def remove(self) -> None:
        shutil.rmtree(self.target, ignore_errors=True)


def error_p95(landed: Sequence[tuple[int, str, int]], max_file_bytes: int) -> float | None:
    """Return the error of sizes from the third append on. Which file was a partition's last is not visible, so the
    smallest of each append is left out; None where no append has left two files of a partition.
    """
    found: dict[tuple[int, str], list[int]] = defaultdict(list)
    for append, partition, each in landed:
        if append >= FROM_COMMIT:
            found[append, partition].append(each)
    return percentile(
        [abs(each - max_file_bytes) / max_file_bytes for sizes in found.values() for each in sorted(sizes)[1:]]
    )
