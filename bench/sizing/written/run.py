"""All sides in each case: one append of each in turn, beginning with another each time."""

import shutil
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tallymark.bench.method import rotated
from tallymark.bench.sizing.written.answer import WrittenRow, WrittenSection
from tallymark.bench.sizing.written.case import WrittenCase
from tallymark.bench.sizing.written.sides import WrittenSide
from tallymark.bench.sizing.written.turn import WrittenTurn
from tallymark.bench.writes.hands import SideFailed
from tallymark.bench.writes.place import local
from tallymark.bench.writes.sides import Crew, crew


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    cases: Sequence[WrittenCase]
    sides: Sequence[WrittenSide]
    cores: int
    pythons: Mapping[str, str]
    """Of writers that need another Spark than ours."""
    parent: Path
    """Where to write."""

    def __str__(self) -> str:
        return (
            f"Each writer has a process of its own with a warm Spark session, local[{self.cores}], 1 GiB for the JVM, "
            "and a table of its own; all append the same Parquet files from local disk, one append of each side in "
            "turn, after one to another table. Bytes written are those of all data files that were new after an "
            "append. Peak: the most memory that any Python worker of a task, or the JVM, has held so far (VmHWM). "
            "Wall and CPU as in the question writes, summed over the appends; ratios are Tallymark's, balanced, over "
            "the other's, medians over the appends, which grow with the table where files are filled."
        )


def run(asked: Asked, *, tell: Callable[[str], None] = lambda text: None) -> tuple[WrittenSection, ...]:
    """Measure below a directory. Whatever ends it, nothing is left there."""
    names = [*dict.fromkeys(side.hands for side in asked.sides)]
    with tempfile.TemporaryDirectory(prefix="tallymark-bench-") as name, local(asked.parent) as place:
        logs = Path(name)
        tell("sizing: starting a Spark session for each writer")
        with crew(
            place, names, cores=asked.cores, pythons=asked.pythons, own_python=sys.executable, logs=logs
        ) as found:
            return tuple(_section(found, case, asked.sides, logs / case.name, tell) for case in asked.cases)


def _section(
    found: Crew, case: WrittenCase, sides: Sequence[WrittenSide], sources: Path, tell: Callable[[str], None]
) -> WrittenSection:
    absent = {_title(found, side): found.absent[side.hands] for side in sides if side.hands in found.absent}
    turns = [_turn(found, case, side) for side in sides if side.hands not in found.absent]
    appended = _all_appends(turns, case, sources, absent, tell)
    rows = [row for turn in appended if (row := _row(turn, case, absent)) is not None]
    for turn in turns:
        turn.remove()
    return WrittenSection(
        case=case.name,
        label=case.label,
        max_file_bytes=case.max_file_bytes,
        small_file_bytes=case.small_file_bytes,
        rows=tuple(rows),
        absent=absent,
    )


def _turn(found: Crew, case: WrittenCase, side: WrittenSide) -> WrittenTurn:
    target = Path(found.place.url, f"{case.name}-{side.name}")
    return WrittenTurn(side, found.hands[side.hands], case, target=target, title=_title(found, side))


def _title(found: Crew, side: WrittenSide) -> str:
    return side.title if side.hands == "ours" else found.title(side.hands)


def _all_appends(
    turns: Sequence[WrittenTurn],
    case: WrittenCase,
    sources: Path,
    absent: dict[str, str],
    tell: Callable[[str], None],
) -> list[WrittenTurn]:
    """Those turns that came to the end; a source goes when all have read it."""
    left = [*turns]
    for number, load in enumerate((case.loads[0], *case.loads)):
        source = sources / str(number)
        load.write(source, seed=number)
        for turn in rotated(left, number) if left else ():
            tell(f"{case.label}: append {number} of {len(case.loads)}, {turn.side.name}")
            try:
                if number:
                    turn.append(source)
                else:
                    turn.warm_up(source)
            except SideFailed as error:
                absent[turn.side.title] = str(error)
                left.remove(turn)
        shutil.rmtree(source)
    return left


def _row(turn: WrittenTurn, case: WrittenCase, absent: dict[str, str]) -> WrittenRow | None:
    """None of a side whose readers do not see every row."""
    expected = sum(load.row_count for load in case.loads)
    try:
        row = turn.row()
    except SideFailed as error:
        absent[turn.side.title] = str(error)
        return None
    if row.rows != expected:
        absent[turn.side.title] = f"it was to leave {expected:,} rows, and its readers see {row.rows:,}"
        return None
    return row
