"""Upserts whose driver or task dies by SIGKILL at each step: no key is lost, doubled or stale."""

import os
import signal
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import pyarrow as pa
import pytest

from tallymark.backends import Backend, open_backend
from tallymark.engine.jobs.write_job import WriteJob
from tallymark.engine.table import open_table
from tallymark.engine.tasks.task_writer import write_task
from tallymark.engine.tasks.ticket import WriteTicket
from tallymark.engine.upsert.keys import key_task
from tallymark.engine.upsert.locate import Lookup, locate_task
from tests.engine.upsert.scene import Changing, in_thread
from tests.support.place import place_on
from tests.support.services.s3_server import ENVIRONMENT
from tests.system.forked import Start
from tests.system.pool_driver import Waiting
from tests.system.pool_worker import SCHEMA, Row, TaskPlan
from tests.system.rigged import Fault, RiggedBackend
from tests.system.scene import BASE, append, arrow_table, assert_at_rest, assert_next_write_restores, place_of, rows_of
from tests.system.test_killed_driver import At

STORES = ["local", pytest.param("s3", marks=pytest.mark.release)]

CHANGED: list[Row] = [
    (0, "a", "updated"),
    (102, "a", "updated"),
    (8, "b", "updated"),
    (900, "b", "inserted"),
    (901, "z", "inserted"),
    (910, "z", "inserted"),
]
DELETED: list[Row] = [(1, "a", "deleted"), (16, "c", "deleted")]

OTHER = TaskPlan(first_id=902, parts=("z",))
"""Appended by another writer after the lookups: its keys, 902 to 909, are between two of the upsert."""

KEYS, DATA, LOG = ".hoodie/.temp/*/KEYS/*", "part=*", ".hoodie/.tallymark/log/*"
UNDONE = {
    "before its keys": Fault(verb="put", path=KEYS, when="before"),
    "after its keys": Fault(verb="put", path=KEYS, when="after"),
    "before a lookup": Fault(verb="get_range", path=DATA, when="before"),
    "in a lookup": Fault(verb="get_range", path=DATA, when="after"),
    "before a merge": Fault(verb="get", path=DATA, when="before"),
    "in a merge": Fault(verb="get", path=DATA, when="after"),
    "after a marker": Fault(verb="put_new", path=".hoodie/.temp/*MARKERS*", when="after"),
    "before its entry": Fault(verb="put_new", path=LOG, when="before"),
}
DONE = {
    "after its entry": Fault(verb="put_new", path=LOG, when="after"),
    "after its projection": Fault(verb="put_new", path=".hoodie/2*commit", when="after"),
    "half way through its deletes": Fault(verb="delete", path=DATA, when="half way"),
}
LATE = {when: Fault(verb="get_range", path="part=z*", when=when) for when in ("before", "after")}

TASKS = {
    "when its keys are stored": ("keys", UNDONE["after its keys"]),
    "in its lookup": ("lookup", UNDONE["in a lookup"]),
    "with old rows": ("merge", UNDONE["in a merge"]),
    "with its files in place": ("merge", None),
}


def changed(*others: TaskPlan) -> list[Row]:
    """Return the rows of the table after the upsert."""
    gone = {(id_, part) for id_, part, _ in CHANGED + DELETED}
    return [row for row in rows_of(*BASE, *others) if row[:2] not in gone] + CHANGED


@dataclass(frozen=True, slots=True)
class Upsert:
    url: str
    options: Any
    fault: Fault | None
    waits: bool = False
    """It says Waiting when its tasks have reported, until it is told something."""

    def backend(self) -> Backend:
        return RiggedBackend(open_backend(self.url, options=self.options), self.fault)


@pytest.fixture
def at(request: pytest.FixtureRequest, store: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> At:
    """A table of keyed rows, with six files in three parts."""
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    found = tmp_path / "table" if store == "local" else place_on(store, request)
    append(found, *BASE, record_key=["id"], unique_in="partition", readers="directory")
    return found


def upsert(at: At, fault: Fault | None = None, *, waits: bool = False) -> Upsert:
    place = place_of(at)
    return Upsert(place.url, place.options, fault, waits)


def change_of(job: WriteJob, backend: Backend) -> Changing:
    rows = CHANGED + DELETED
    return Changing(
        job, backend, arrow_table(rows), delete=pa.array([row in DELETED for row in rows]), task_bytes=1 << 20
    )


def drive(line: Connection, plan: Upsert) -> None:
    """The program: the driver, and its tasks in threads."""
    os.environ.update(ENVIRONMENT)

    async def main() -> None:
        backend = plan.backend()
        table = open_table(plan.url, options=plan.options, backend=backend)
        async with table.write(schema=SCHEMA, mode="upsert") as job:
            change = change_of(job, backend)
            await change.look_up(1)
            await change.plan()
            reports = await change.write()
            if plan.waits:
                line.send(Waiting())
                await anyio.to_thread.run_sync(line.recv)
            await job.commit(reports)

    anyio.run(main, backend="trio")


def run_until_killed(start: Start, plan: Upsert) -> None:
    assert start(drive, plan).wait() == -signal.SIGKILL


@pytest.mark.parametrize("store", STORES)
@pytest.mark.parametrize("point", UNDONE)
def test_a_driver_killed_before_its_entry_has_changed_nothing(at: At, start: Start, point: str) -> None:
    run_until_killed(start, upsert(at, UNDONE[point]))
    assert_next_write_restores(at, rows_of(*BASE), ["commit", "rollback", "commit"])


@pytest.mark.parametrize("store", STORES)
@pytest.mark.parametrize("point", DONE)
def test_a_driver_killed_after_its_entry_has_changed_all(at: At, start: Start, point: str) -> None:
    run_until_killed(start, upsert(at, DONE[point]))
    assert_next_write_restores(at, changed(), ["commit", "commit", "commit"])


@pytest.mark.parametrize("store", STORES)
@pytest.mark.parametrize("when", LATE)
def test_a_driver_killed_while_it_looks_into_a_late_file_has_changed_nothing(at: At, start: Start, when: str) -> None:
    driver = start(drive, upsert(at, LATE[when], waits=True))
    driver.hear(Waiting)
    append(at, OTHER)
    driver.tell("go on")
    assert driver.wait() == -signal.SIGKILL
    assert_next_write_restores(at, rows_of(*BASE, OTHER), ["commit", "commit", "rollback", "commit"])


@pytest.mark.parametrize("store", STORES)
@pytest.mark.parametrize("point", TASKS)
def test_another_attempt_of_a_killed_task_does_the_same_work(at: At, start: Start, point: str) -> None:
    step, fault = TASKS[point]
    plan = upsert(at)

    def run(name: str, work: partial[Any]) -> Any:
        """Run a task in a process of its own; of the step, first in one that is killed."""
        if name == step:
            assert start(perform, upsert(at, fault), work, True).wait() == -signal.SIGKILL
        return start(perform, plan, work, False).hear(Done).result

    async def main() -> None:
        async with open_table(plan.url, options=plan.options).write(schema=SCHEMA, mode="upsert") as job:
            change = change_of(job, plan.backend())
            keys = await in_thread(run, "keys", partial(key_task, job.ticket, change.rows, task=0))
            for lookup in await job.look_up([keys]):
                change.hits += await in_thread(run, "lookup", partial(located, job.ticket, lookup))
            await change.plan()
            reports = []
            for number, part in enumerate(change.parts()):
                planned = change.tasks[number] if change.tasks else ()
                work = partial(write_task, job.ticket, part, task=number, planned=planned)
                reports.append(await in_thread(run, "merge", work))
            await job.commit(reports)

    anyio.run(main, backend="trio")
    assert_at_rest(at, changed())


@dataclass(frozen=True, slots=True)
class Done:
    result: Any


def perform(line: Connection, plan: Upsert, work: partial[Any], dies: bool) -> None:
    """The program of one task."""
    os.environ.update(ENVIRONMENT)
    result = work(backend=plan.backend())
    if dies:
        os.kill(os.getpid(), signal.SIGKILL)
    line.send(Done(result))


def located(ticket: WriteTicket, lookup: Lookup, *, backend: Backend) -> list[pa.RecordBatch]:
    return list(locate_task(ticket, lookup, backend=backend))
