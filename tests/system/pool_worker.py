"""A process of a driver's pool: it writes one attempt of one task, and may stop itself in the middle."""

import os
import signal
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from typing import Literal

import pyarrow as pa

from tallymark.backends import Backend, open_backend
from tallymark.engine.errors import TallymarkError
from tallymark.engine.sizing import PlannedFile
from tallymark.engine.tasks.report import TaskReport
from tallymark.engine.tasks.task_writer import write_task
from tallymark.engine.tasks.ticket import WriteTicket
from tests.system.rigged import Fault, RiggedBackend

COLUMNS: dict[str, pa.DataType] = {"id": pa.int64(), "part": pa.string(), "payload": pa.string()}
SCHEMA = pa.schema(COLUMNS)

Row = tuple[int, str, str]
Stops = Literal["never", "in mid file", "between files"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskPlan:
    """What one attempt writes, and where it stops itself (SIGSTOP), to go on when it is told to."""

    task: int = 0
    attempt: int = 0
    first_id: int
    parts: tuple[str, ...] = ("a", "b")
    row_count: int = 8
    """In each part."""
    width: int = 20
    """Letters of a payload. No two are alike, so that a file is about as large."""
    stops: Stops = "never"
    """In the middle of the first part's file, or when that is whole and the next has not been asked for."""
    dies: Literal["never", "with old rows", "with its files in place"] = "never"
    """By SIGKILL, where it fills a small file: when it has read that, or when all that it writes is there."""
    is_awaited: bool = True
    """The driver waits for its report."""
    is_winner: bool = True
    """The driver commits its report."""

    @property
    def rows(self) -> list[Row]:
        return [row for number in range(len(self.parts)) for row in self._rows(number)]

    def batches(self, line: Connection) -> Iterator[pa.RecordBatch]:
        """The rows, part by part, in halves. The writer has encoded a half when it asks for the next."""
        for number in range(len(self.parts)):
            rows, half = self._rows(number), self.row_count // 2
            yield _batch(rows[:half])
            if number == 0 and self.stops == "in mid file":
                self._stop(line)
            yield _batch(rows[half:])
            if number == 0 and self.stops == "between files":
                self._stop(line)

    def _rows(self, number: int) -> list[Row]:
        first = self.first_id + number * self.row_count
        ids = range(first, first + self.row_count)
        return [(id_, self.parts[number], f"{id_}".rjust(self.width, ".")) for id_ in ids]

    def _stop(self, line: Connection) -> None:
        line.send(Stopped(self.task, self.attempt, os.getpid()))
        os.kill(os.getpid(), signal.SIGSTOP)


@dataclass(frozen=True, slots=True)
class Stopped:
    """The attempt is about to stop itself."""

    task: int
    attempt: int
    pid: int


@dataclass(frozen=True, slots=True)
class Doomed:
    """The attempt has begun, and will be killed."""

    task: int
    attempt: int
    pid: int


@dataclass(frozen=True, slots=True)
class AttemptEnded:
    task: int
    attempt: int
    outcome: str
    """``reported``, or the class of the error that ``write_task`` has raised."""


class Worker:
    """A forked process that waits for a ticket. To be made before this process has any thread or loop."""

    def __init__(self, plan: TaskPlan, line: Connection, earlier: Sequence["Worker"]) -> None:
        self.plan = plan
        self._ours, theirs = Pipe()
        if os.fork() == 0:
            for worker in (*earlier, self):  # else the end of the driver would not be noticed
                worker._ours.close()
            _work(plan, theirs, line)
        theirs.close()

    def begin(self, ticket: WriteTicket, planned: Sequence[PlannedFile] = ()) -> None:
        self._ours.send((ticket, planned))

    def report(self) -> TaskReport:
        """Blocking. Raises what the attempt has failed with."""
        outcome = self._ours.recv()
        if isinstance(outcome, TallymarkError):
            raise outcome
        assert isinstance(outcome, TaskReport)
        return outcome


def _work(plan: TaskPlan, driver: Connection, line: Connection) -> None:
    with suppress(EOFError, OSError):  # the driver is gone
        ticket, planned = driver.recv()
        outcome: TaskReport | TallymarkError
        if plan.dies != "never":
            line.send(Doomed(plan.task, plan.attempt, os.getpid()))
        try:
            outcome = write_task(
                ticket,
                plan.batches(line),
                task=plan.task,
                attempt=plan.attempt,
                planned=planned,
                backend=_dying(ticket) if plan.dies == "with old rows" else None,
            )
            if plan.dies == "with its files in place":
                os.kill(os.getpid(), signal.SIGKILL)
        except TallymarkError as error:
            outcome = error
        name = "reported" if isinstance(outcome, TaskReport) else type(outcome).__name__
        line.send(AttemptEnded(plan.task, plan.attempt, name))
        driver.send(outcome)
    os._exit(0)


def _dying(ticket: WriteTicket) -> Backend:
    inner = open_backend(ticket.url, options=ticket.options)
    return RiggedBackend(inner, Fault(verb="get", path="part=*", when="after"))


def _batch(rows: Sequence[Row]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([dict(zip(SCHEMA.names, row, strict=True)) for row in rows], schema=SCHEMA)
