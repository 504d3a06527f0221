"""All sides on one folder of one disk, in turn: how long markers take, how many there may be, and what a job writes."""

from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from subprocess import SubprocessError

from tallymark.backends.errors import TallymarkError
from tallymark.bench.markers.answer import AckRow, Beside, JobRow, LoadRows
from tallymark.bench.markers.effort import Effort
from tallymark.bench.markers.load import Load
from tallymark.bench.markers.measured import Taken, take, whole_job
from tallymark.bench.markers.names import instant
from tallymark.bench.markers.side import OpenSide, Side
from tallymark.bench.method import rotated

Tell = Callable[[str], None]

_instants = map(instant, count(1))


@dataclass(frozen=True, slots=True)
class Opened:
    side: Side
    open: OpenSide


def beside(sides: Iterable[Side], effort: Effort, logs: Path, absent: dict[str, str], tell: Tell) -> Beside:
    """Sides that cannot take part are ``absent``, with the reason."""
    with ExitStack() as stack:
        opened = list(open_sides(sides, effort, logs, stack, absent, tell))
        loads = [_in_turn(opened, load, effort, logs, tell) for load in effort.loads]
        jobs = [
            _job(each, effort.filled(markers), logs, tell)
            for markers in effort.filling
            for each in opened
            if each.side.is_filled
        ]
    return Beside(loads=tuple(loads), jobs=tuple(jobs))


def open_sides(
    sides: Iterable[Side], effort: Effort, logs: Path, stack: ExitStack, absent: dict[str, str], tell: Tell
) -> Iterable[Opened]:
    """Open, and warm, for as long as the stack; those that cannot take part are ``absent``, with the reason."""
    for side in sides:
        tell(f"markers: {side.title}: beginning")
        try:
            with ExitStack() as own:
                found = own.enter_context(side.opened())
                take(found, next(_instants), effort.first, logs)
                stack.push(own.pop_all())
        except (TallymarkError, OSError, SubprocessError) as error:
            absent[side.title] = str(error).strip().partition("\n")[0]
        else:
            yield Opened(side, found)


def _in_turn(opened: Sequence[Opened], load: Load, effort: Effort, logs: Path, tell: Tell) -> LoadRows:
    taken: dict[str, Taken] = {}
    for number in range(effort.rounds):
        for each in rotated(opened, number) if opened else ():
            tell(f"markers: {load}: round {number + 1} of {effort.rounds}: {each.side.title}")
            found = take(each.open, next(_instants), load, logs)
            name = each.side.name
            taken[name] = taken[name] + found if name in taken else found
    rows = (AckRow(side=each.side.name, title=each.side.title, acks=taken[each.side.name].acks) for each in opened)
    return LoadRows(load=str(load), is_open=load.rate is not None, rows=tuple(rows))


def _job(each: Opened, load: Load, logs: Path, tell: Tell) -> JobRow:
    tell(f"markers: {load}: {each.side.title}")
    return JobRow(side=each.side.name, title=each.side.title, job=whole_job(each.open, next(_instants), load, logs))


def published(sides: Sequence[Side], effort: Effort, logs: Path, tell: Tell) -> Iterable[JobRow]:
    """Jobs of so many markers, from none to the last and until they are gone."""
    for side in sides:
        with side.opened() as found:
            for markers in effort.published:
                yield _job(Opened(side, found), effort.filled(markers), logs, tell)


def first_and_then(side: OpenSide, effort: Effort, load: Load, logs: Path) -> Taken:
    """The load, once the side is warm."""
    take(side, next(_instants), effort.first, logs)
    return take(side, next(_instants), load, logs)
