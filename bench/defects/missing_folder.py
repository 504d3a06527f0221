"""The folder of a dead writer's markers is gone when the next writer rolls it back."""

import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from subprocess import SubprocessError

from tallymark.bench.defects.answer import Finding
from tallymark.bench.defects.trial import Ground, Trial
from tallymark.bench.killed.folder import Remains, remains
from tallymark.bench.killed.run import ALONE, DATA
from tallymark.bench.peers.writers import writer
from tallymark.bench.writes.hands import Hands, SideFailed
from tallymark.bench.writes.order import Kill, Order
from tallymark.bench.writes.place import WritePlace, local
from tallymark.bench.writes.session import Unfit, hands_for


def findings(ground: Ground) -> Iterator[Finding]:
    for name in ["hudi", "ours"] if ground.has_hudi else ["ours"]:
        try:
            yield _finding(ground, name)
        except (Unfit, SideFailed, OSError, SubprocessError) as error:
            reason = str(error).strip().partition("\n")[0]
            yield Finding(trial="missing folder", side=writer(name).title, tried="", shown="not tried", seen=reason)


def _finding(ground: Ground, name: str) -> Finding:
    folder = ground.table(f"missing-{name}")
    DATA.write(source := folder / "source")
    with local(folder) as place:
        target = f"{place.url}/table"
        with _hands(ground, name, place) as hands:
            hands.write(_order(source, target))
            killed = _killed(hands, _order(source, target, "job"))
        marked = list(Path(target).glob(".hoodie/.temp/*"))
        if not marked:  # it has failed, and before it was to be killed
            raise killed
        for each in marked:
            shutil.rmtree(each)
        with _hands(ground, name, place) as hands:
            dead = _remains(hands, target)
            hands.write(_order(source, target))
            left, spark = _remains(hands, target), hands.spark
    right = left.rows == 2 * DATA.rows
    return Finding(
        trial="missing folder",
        side=f"{writer(name).title}, Spark {spark}",
        tried=f"an append is killed and leaves {dead.files} data files that no commit has; its folder of markers is "
        f"removed ({len(marked)}); an undisturbed append follows",
        shown="yes" if left.files else "no",
        seen=f"{left.files} data files that no commit has are left; its readers see "
        f"{'the rows of the two whole appends' if right else f'{left.rows - 2 * DATA.rows:+,} rows'}",
        counts={"files_before": dead.files, "files_after": left.files, "rows_too_many": left.rows - 2 * DATA.rows},
    )


def _killed(hands: Hands, order: Order) -> SideFailed:
    try:
        hands.write(order)
    except SideFailed as error:
        return error
    raise AssertionError("the job was to be killed, and has ended")


@contextmanager
def _hands(ground: Ground, name: str, place: WritePlace) -> Iterator[Hands]:
    python = ground.pythons.get(name, sys.executable)
    with hands_for(name, place, master=ALONE, python=python, logs=ground.folder) as hands:
        hands.begin()
        hands.await_session()
        yield hands


def _order(source: Path, target: str, kill: Kill | None = None) -> Order:
    return Order(source=source.as_uri(), target=target, mode="append", kill=kill)


def _remains(hands: Hands, target: str) -> Remains:
    return remains(Path(target), *hands.look(target))


TRIAL = Trial(
    "missing folder",
    "A rollback that finds no folder of markers takes it that there is nothing to delete, and has succeeded.",
    findings,
)
