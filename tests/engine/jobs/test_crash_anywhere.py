"""A writer dies at each of its calls to storage in turn; the next writer leaves exactly what was committed."""

import anyio
import pytest

from tallymark.backends import Backend
from tallymark.engine.jobs.write_job import WriteJob
from tallymark.engine.settings import MarkerSettings
from tallymark.engine.tasks.report import TaskReport
from tests.engine.jobs.deaths import copied, run_to_death, told_where, without_probes
from tests.engine.jobs.scene import (
    FAMILIES,
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


async def overwrite_partitions(backend: Backend, markers: MarkerSettings) -> None:
    await _write(backend, markers, "overwrite", partition_overwrite="dynamic")


async def overwrite_all(backend: Backend, markers: MarkerSettings) -> None:
    await _write(backend, markers, "overwrite")


async def append_with_fallback(backend: Backend, markers: MarkerSettings) -> None:
    """Some of its tasks cannot reach the service: a loser that published, one that did not, and a winner."""
    async with begin(backend, markers=markers) as job:
        reached = await write_rows(job, backend, {2: 1}, task=2)
        await _publish_directly(job, backend, task=1, attempt=0)
        await mark_directly(job, backend, [f"month=9/{name_of(job, task=1, attempt=2)}"])
        await job.commit([await _publish_directly(job, backend, task=1, attempt=1), reached])


async def roll_back_with_fallback(backend: Backend, markers: MarkerSettings) -> None:
    async with begin(backend, markers=markers) as job:
        await write_rows(job, backend)
        await _publish_directly(job, backend, task=1, attempt=0)
        await mark_directly(job, backend, [f"month=9/{name_of(job, task=1, attempt=2)}"])


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


def fresh_store(*, has_staging: bool) -> Store:
    store = Store(has_staging=has_staging)
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


@pytest.mark.parametrize("has_staging", FAMILIES, ids=["staging", "no_staging"])
@pytest.mark.parametrize(
    ("writer", "kind"),
    [
        (append, "batched"),
        (append, "direct"),
        (overwrite_partitions, "batched"),
        (overwrite_all, "direct"),
        (roll_back, "batched"),
        (roll_back, "direct"),
        (append_with_fallback, "batched"),
        (roll_back_with_fallback, "batched"),
    ],
)
def test_wherever_a_writer_dies_the_next_write_leaves_exactly_what_was_committed(writer, kind, has_staging):
    start = fresh_store(has_staging=has_staging)
    calls = run_to_death(copied(start), writer, kind, at=None).count
    assert calls > 30
    for at in range(1, calls + 1):
        store = copied(start)
        run_to_death(store, writer, kind, at=at)
        with told_where(f"died after call {at} of {calls}"):
            check_rescued(store)


@pytest.mark.parametrize("has_staging", FAMILIES, ids=["staging", "no_staging"])
def test_wherever_the_rescuer_dies_too_the_next_write_leaves_exactly_what_was_committed(has_staging):
    """Every twelfth death of the first writer, met by every death of the one that cleans up behind it."""
    start = fresh_store(has_staging=has_staging)
    deaths = range(4, run_to_death(copied(start), overwrite_partitions, "batched", at=None).count, 12)
    for first in deaths:
        left = copied(start)
        run_to_death(left, overwrite_partitions, "batched", at=first)
        left.clock.pass_lease()
        calls = run_to_death(copied(left), clean, "batched", at=None).count
        for second in range(1, calls + 1):
            store = copied(left)
            run_to_death(store, clean, "batched", at=second)
            with told_where(f"the writer died after call {first}, its rescuer after call {second} of {calls}"):
                check_rescued(store)


@pytest.mark.parametrize("has_staging", FAMILIES, ids=["staging", "no_staging"])
def test_two_rescuers_at_once_do_each_other_no_harm(has_staging):
    start = fresh_store(has_staging=has_staging)
    calls = run_to_death(copied(start), overwrite_partitions, "batched", at=None).count

    async def rescue(store: Store) -> None:
        async with anyio.create_task_group() as rescuers:
            rescuers.start_soon(table(store.backend).clean)
            rescuers.start_soon(table(store.backend).rollback)

    for at in range(1, calls + 1):
        store = copied(start)
        run_to_death(store, overwrite_partitions, "batched", at=at)
        store.clock.pass_lease()
        anyio.run(rescue, store, backend="trio")
        with told_where(f"died after call {at} of {calls}"):
            store.check_at_rest()
