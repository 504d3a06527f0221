"""A writer dies at each of its calls to storage in turn; the next writer leaves exactly what was committed."""

import anyio
import pytest

from tallymark.backends import Backend
from tallymark.engine.jobs.write_job import WriteJob
from tallymark.engine.settings import MarkerSettings
from tallymark.engine.tasks.report import TaskReport
from tests.engine.jobs.deaths import wherever_it_dies, without_probes
from tests.engine.jobs.scene import (
    Store,
    begin,
    committed,
    flights,
    mark,
    mark_directly,
    name_of,
    publish,
    table,
    write_rows,
)
from tests.table_invariants import projection_is_a_prefix_of_the_log, table_is_at_rest

pytestmark = pytest.mark.no_cover


async def append(backend: Backend, markers: MarkerSettings) -> None:
    await _write(backend, markers, "append")


async def append_in_this_process(backend: Backend, markers: MarkerSettings) -> None:
    await _write(backend, markers, "append", is_private=True)


async def overwrite_partitions(backend: Backend, markers: MarkerSettings) -> None:
    await _write(backend, markers, "overwrite", partition_overwrite="dynamic")


async def overwrite_all(backend: Backend, markers: MarkerSettings) -> None:
    await _write(backend, markers, "overwrite")


async def append_with_fallback(backend: Backend, markers: MarkerSettings, *, commits: bool = True) -> None:
    """Some of its tasks cannot reach the service: a loser that published, one that did not, and a winner."""
    async with begin(backend, markers=markers) as job:
        reached = await write_rows(job, backend, {2: 1}, task=2)
        await _publish_directly(job, backend, task=1, attempt=0)
        await mark_directly(job, backend, [f"month=9/{name_of(job, task=1, attempt=2)}"])
        winner = await _publish_directly(job, backend, task=1, attempt=1)
        if commits:
            await job.commit([winner, reached])


async def roll_back_with_fallback(backend: Backend, markers: MarkerSettings) -> None:
    await append_with_fallback(backend, markers, commits=False)


async def _publish_directly(job: WriteJob, backend: Backend, *, task: int, attempt: int) -> TaskReport:
    path = f"month=1/{name_of(job, task=task, attempt=attempt)}"
    await mark_directly(job, backend, [path])
    file = publish(job.ticket, backend, path, flights({1: 2}))
    return TaskReport(instant=job.instant, task=task, attempt=attempt, files=(file,), direct_markers=1)


async def roll_back(backend: Backend, markers: MarkerSettings) -> None:
    """A job that fails after some of its files were published, and ends itself."""
    async with begin(backend, markers=markers) as job:
        await write_rows(job, backend)
        await mark(job, backend, [f"month=9/{name_of(job)}"])


async def _write(backend: Backend, markers: MarkerSettings, mode: str, **named) -> None:
    """With all that a job meets: a lost attempt that published, one that did not, and a name that was not needed."""
    async with begin(backend, mode, markers=markers, **named) as job:
        await write_rows(job, backend, task=1, attempt=0)
        await mark(job, backend, [f"month=9/{name_of(job, task=2)}"])
        winners = [await write_rows(job, backend, task=1, attempt=1), await write_rows(job, backend, {2: 1}, task=2)]
        await job.commit(winners)


async def clean(backend: Backend, markers: MarkerSettings) -> None:
    await table(backend).clean()


def filled(store: Store) -> Store:
    anyio.run(committed, store.backend, "append", {1: 2, 2: 2, 5: 1}, backend="trio")
    return store


def check_rescued(store: Store) -> None:
    """The next write ends what the dead writer left, and what was decided before stays decided."""
    projection_is_a_prefix_of_the_log(store.objects)
    before = store.decisions
    store.clock.pass_lease()
    anyio.run(committed, store.backend, "append", {7: 1}, backend="trio")
    table_is_at_rest(without_probes(store))
    after = store.decisions
    assert dict(list(after.items())[: len(before)]) == before
    assert {entry["kind"] for instant, entry in after.items() if instant not in before} <= {"commit", "rollback"}
    assert len(after) - len(before) in (1, 2), "at most one rollback, and the next write's own commit"


@pytest.mark.parametrize(
    ("writer", "kind"),
    [
        (append, "batched"),
        (append_in_this_process, "batched"),
        (append, "direct"),
        (overwrite_partitions, "batched"),
        (overwrite_all, "direct"),
        (roll_back, "batched"),
        (roll_back, "direct"),
        (append_with_fallback, "batched"),
        (roll_back_with_fallback, "batched"),
    ],
)
def test_wherever_a_writer_dies_the_next_write_leaves_exactly_what_was_committed(store, writer, kind):
    wherever_it_dies(filled(store), writer, kind, check_rescued)


def test_wherever_the_rescuer_dies_too_the_next_write_leaves_exactly_what_was_committed(store):
    """Every twelfth death of the first writer, met by every death of the one that cleans up behind it."""

    def check(left: Store) -> None:
        left.clock.pass_lease()
        wherever_it_dies(left, clean, "batched", check_rescued, calls_min=1)

    wherever_it_dies(filled(store), overwrite_partitions, "batched", check, first=4, step=12)


def test_two_rescuers_at_once_do_each_other_no_harm(store):
    async def rescue(left: Store) -> None:
        async with anyio.create_task_group() as rescuers:
            rescuers.start_soon(table(left.backend).clean)
            rescuers.start_soon(table(left.backend).rollback)

    def check(left: Store) -> None:
        left.clock.pass_lease()
        anyio.run(rescue, left, backend="trio")
        left.check_at_rest()

    wherever_it_dies(filled(store), overwrite_partitions, "batched", check)


def test_wherever_the_first_writer_of_a_table_dies_the_next_write_leaves_exactly_what_was_committed(store):
    wherever_it_dies(store, append, "batched", check_rescued)
