"""The whole of ``python -m tallymark.bench killed``: one side after the other, each in its own sessions."""

import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from subprocess import SubprocessError

from tallymark.bench.killed.answer import KilledAnswer, KilledRow
from tallymark.bench.killed.folder import Remains, remains
from tallymark.bench.machine import Machine
from tallymark.bench.peers.writers import writer
from tallymark.bench.writes.data import Data
from tallymark.bench.writes.hands import Hands, SideFailed
from tallymark.bench.writes.killer import ROWS_BEFORE
from tallymark.bench.writes.order import Kill, Order
from tallymark.bench.writes.place import WritePlace, local
from tallymark.bench.writes.session import Unfit, hands_for

DATA = Data(rows=8 * ROWS_BEFORE, tasks=4)

ALONE = "local[2]"
"""Executor and driver in one JVM: what is killed is all of it."""

CLUSTER = "local-cluster[2,1,1024]"
"""Two executors of one core, each a JVM of its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Killing:
    """One side on a disk."""

    name: str
    place: WritePlace
    source: Path
    python: str
    logs: Path

    def found(self) -> KilledRow:
        """Raises SideFailed, or Unfit, OSError, SubprocessError where it cannot run."""
        with self._hands(CLUSTER) as hands:
            hands.write(self._order("executor"))
            hands.write(self._order("executor", "executor"))
            executor, spark = self._remains(hands, "executor"), hands.spark
        self._kill_job()
        with self._hands(ALONE) as hands:
            job = self._remains(hands, "job")
            hands.write(self._order("job"))
            then = self._remains(hands, "job")
        title = f"{writer(self.name).title}, Spark {spark}"
        return KilledRow(side=self.name, title=title, executor=executor, job=job, job_then=then)

    def _kill_job(self) -> None:
        with self._hands(ALONE) as hands:
            hands.write(self._order("job"))
            with suppress(SideFailed):
                hands.write(self._order("job", "job"))
                raise AssertionError("the job was to be killed, and has ended")

    @contextmanager
    def _hands(self, master: str) -> Iterator[Hands]:
        with hands_for(self.name, self.place, master=master, python=self.python, logs=self.logs) as hands:
            hands.begin()
            hands.await_session()
            yield hands

    def _target(self, table: Kill) -> str:
        return f"{self.place.url}/{self.name}-{table}"

    def _order(self, table: Kill, kill: Kill | None = None) -> Order:
        return Order(source=self.source.as_uri(), target=self._target(table), mode="append", kill=kill)

    def _remains(self, hands: Hands, table: Kill) -> Remains:
        return remains(Path(self._target(table)), *hands.look(self._target(table)))


def run(
    sides: Sequence[str],
    parent: Path,
    pythons: Mapping[str, str],
    *,
    tell: Callable[[str], None] = lambda text: None,
) -> KilledAnswer:
    """Measure below a directory. Whatever ends it, nothing is left there."""
    began, machine = datetime.now(UTC), Machine.here()
    rows: list[KilledRow] = []
    absent: dict[str, str] = {}
    with tempfile.TemporaryDirectory(prefix="tallymark-bench-") as folder, local(parent) as place:
        source = Path(folder, "source")
        DATA.write(source)
        for name in sides:
            tell(f"killed: {name}")
            python = pythons.get(name, sys.executable)
            killing = Killing(name=name, place=place, source=source, python=python, logs=Path(folder))
            try:
                rows.append(killing.found())
            except (Unfit, SideFailed, OSError, SubprocessError) as error:
                absent[writer(name).title] = str(error).strip().partition("\n")[0]
    return KilledAnswer(began=began, machine=machine, rows_a_write=DATA.rows, rows=tuple(rows), absent=absent)
