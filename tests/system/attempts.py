"""What happens to the attempts of a write's tasks from within, and what each of them was told.

These functions run on executors, which cannot import the tests: they are shipped by value.
"""

import faulthandler
import json
import os
import signal
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
from pyspark import TaskContext, cloudpickle

from tallymark.engine.tasks.report import TaskReport
from tests.system.spark import faults

Point = Literal["half way", "all rows in", "published"]
"""Of one attempt: a few batches in, its files half written; no row is left; its report is not on its way yet."""

Act = Callable[[Path], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """How an attempt went, as it saw it itself. One that was killed has left no such note."""

    task: int
    attempt: int
    """Counted from 0 in each attempt of the stage."""
    pid: int
    files: frozenset[str] = frozenset()
    """What it had published, seen on the disk before anybody knew of its report."""
    error: str | None = None


def told(notes: Path) -> list[Told]:
    """What the attempts have noted so far, in no order."""
    found = [json.loads(note.read_text()) for note in notes.glob("told-*")]
    return [Told(**{**note, "files": frozenset(note.get("files", ()))}) for note in found]


def disturbed(
    write_partition: Callable[[Any, Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]],
    notes: Path,
    table: Path,
    point: Point,
    act: Act,
    ticket: Any,
    batches: Iterator[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    """The task of a write, with an act of task 0 at the point; every attempt notes what it was told."""
    context = TaskContext.get()
    assert context is not None

    def reach(reached: Point) -> None:
        if reached == point and context.partitionId() == 0:
            act(notes)

    about = {"task": context.partitionId(), "attempt": context.attemptNumber(), "pid": os.getpid()}
    note = notes / f"told-{context.taskAttemptId()}"
    try:
        rows = list(write_partition(ticket, _points(batches, reach)))
    except Exception as error:
        leave(note, json.dumps({**about, "error": type(error).__name__}))
        raise
    [report] = [TaskReport.decode(batch.column(0)[0].as_py()) for batch in rows]
    published = [file.path for file in report.files if (table / file.path).exists()]
    leave(note, json.dumps({**about, "files": published}))
    reach("published")
    yield from rows


def _points(batches: Iterator[pa.RecordBatch], reach: Callable[[Point], None]) -> Iterator[pa.RecordBatch]:
    for number, batch in enumerate(batches):
        if number == 3:
            reach("half way")
        yield batch
    reach("all rows in")


def meet_its_twin(notes: Path) -> None:
    """Go on only when the other attempt has come here, too."""
    context = TaskContext.get()
    assert context is not None
    mine = context.attemptNumber()
    faults.meet(notes / f"met-{mine}", notes / f"met-{1 - mine}")


def hold(notes: Path) -> None:
    """Let the first attempt that comes here wait until it may go on; it leaves its process id.

    Where all its threads are it says on SIGUSR1, in "stacks".
    """
    if not (notes / "held").exists():
        stacks = os.open(notes / "stacks", os.O_WRONLY | os.O_CREAT)  # open as long as the process lives
        faulthandler.register(signal.SIGUSR1, file=stacks)
        leave(notes / "held", str(os.getpid()))
        faults.await_that((notes / "go").exists)


def orphan(notes: Path) -> None:
    """Of the first attempt that comes here, SIGKILL the executor and what it forks its workers from; then hold.

    This very process goes on, as one does on a machine that the rest of the cluster has lost sight of.
    """
    if not (notes / "held").exists():
        forker = os.getppid()
        executor = int(Path(f"/proc/{forker}/stat").read_text().rpartition(")")[2].split()[1])
        os.kill(forker, signal.SIGKILL)  # else it would take its workers along
        os.kill(executor, signal.SIGKILL)
    hold(notes)


def leave(note: Path, text: str) -> None:
    """Whoever sees the note sees all of it."""
    begun = note.with_name(f".{note.name}.{os.getpid()}")
    begun.write_text(text)
    begun.rename(note)


cloudpickle.register_pickle_by_value(sys.modules[__name__])
