"""The whole of ``python -m tallymark.bench views``: one size of table after the other, and on each one side by one.

Commits are followed last, by all sides in turn: each sees the same ones.
"""

import os
import tempfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from subprocess import SubprocessError

from tallymark.backends.errors import TallymarkError
from tallymark.bench.folder import new_folder
from tallymark.bench.machine import Machine
from tallymark.bench.method import rotated
from tallymark.bench.views.answer import Sync, ViewAnswer, ViewRow, ViewSection
from tallymark.bench.views.ground import Effort, Ground
from tallymark.bench.views.kinds import KINDS
from tallymark.bench.views.schedule import Schedule
from tallymark.bench.views.side import Followed, LookUps, Opening, OpenSide, Side
from tallymark.bench.views.sides import sides
from tallymark.bench.views.table import TableShape

FILES = (10_000, 100_000, 1_000_000)

QUICK_FILES = (1_000, 3_000)

QUICK = Effort(
    schedule=Schedule(rate=200, connections=8, processes=2, seconds=1, warm_up_s=0.5),
    alone_s=0.2,
    followed=(1, 10),
    followed_times=2,
)
"""Long enough to see that everything answers, and too short for any figure."""

SMALL = TableShape(files=200, partitions=100, commits=2)
"""What processes are warmed up with."""

Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    files: Sequence[int] = FILES
    kinds: Sequence[str] = KINDS
    effort: Effort = field(default_factory=Effort)
    parent: Path = field(default_factory=lambda: Path(tempfile.gettempdir()))


async def run(asked: Asked, *, tell: Tell = lambda text: None) -> ViewAnswer:
    """Measure below a directory. Whatever ends it, nothing is left there."""
    began, machine = datetime.now(UTC), Machine.here()
    absent: dict[str, str] = {}
    sections = []
    with new_folder(asked.parent) as folder:
        small = await _ground(folder / "small", SMALL, asked.effort)
        for files in asked.files:
            with new_folder(folder) as large:
                tell(f"views: making {files:,} files")
                ground = await _ground(large, TableShape(files=files), asked.effort)
                found = [side for kind in asked.kinds for side in sides(kind, ground, small)]
                sections.append(await _section(ground, found, absent, tell))
    return ViewAnswer(
        began=began,
        machine=machine,
        effort=asked.effort,
        sections=tuple(sections),
        absent=absent,
        load_after=os.getloadavg()[0],
    )


async def _ground(folder: Path, shape: TableShape, effort: Effort) -> Ground:
    ground = Ground(folder, shape, effort)
    await ground.make()
    return ground


@dataclass(slots=True)
class _Measured:
    side: Side
    open: OpenSide
    opening: Opening
    look_ups: LookUps
    followed: dict[int, list[Followed]] = field(default_factory=dict)

    @property
    def row(self) -> ViewRow:
        syncs = (Sync(files=files, followed=tuple(found)) for files, found in self.followed.items())
        return ViewRow(
            side=self.side.name,
            title=self.side.title,
            opening=self.opening,
            look_ups=self.look_ups,
            syncs=tuple(syncs),
        )


async def _section(ground: Ground, found: Sequence[Side], absent: dict[str, str], tell: Tell) -> ViewSection:
    with ExitStack() as stack:
        measured = []
        for side in found:
            tell(f"views: {ground.shape.label}: {side.title}")
            try:
                measured.append(_measured(side, stack))
            except (TallymarkError, OSError, SubprocessError) as error:
                absent[f"{side.title}, {ground.shape.label}"] = str(error).strip().partition("\n")[0]
        tell(f"views: {ground.shape.label}: following commits")
        await _follow(ground, measured)
        return ViewSection(shape=ground.shape, rows=tuple(each.row for each in measured))


def _measured(side: Side, stack: ExitStack) -> _Measured:
    with ExitStack() as own:
        opened, opening = own.enter_context(side.opened())
        look_ups = opened.look_up()
        stack.push(own.pop_all())
    return _Measured(side, opened, opening, look_ups)


async def _follow(ground: Ground, measured: Sequence[_Measured]) -> None:
    for files in ground.effort.followed:
        for number in range(ground.effort.followed_times + 1):
            question = await ground.append(files)
            for each in rotated(measured, number) if measured else ():
                took = each.open.follow(question)
                if took is not None and number:  # the first of each size is a warm-up
                    each.followed.setdefault(files, []).append(took)
