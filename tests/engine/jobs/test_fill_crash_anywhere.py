"""A writer that fills small files dies at each of its calls to storage in turn; the next write leaves each committed
row once, and nothing else."""

from collections.abc import Mapping, Sequence
from functools import partial

import anyio
import pytest

from tallymark.backends import Backend
from tallymark.engine.jobs import lost_fills
from tallymark.engine.settings import MarkerSettings
from tests.engine.jobs.deaths import copied, run_to_death, wherever_it_dies
from tests.engine.jobs.filling import SIZING, Months, appended, write_planned
from tests.engine.jobs.scene import Store, begin, rows_in
from tests.support.dying import DyingBackend

pytestmark = pytest.mark.no_cover

BEFORE: Months = {1: [10, 11], 2: [20]}
MINE: Months = {1: [12], 2: [21], 3: [30]}
RIVAL: Months = {1: [13], 2: [22]}
NEXT: Months = {1: [14], 3: [31]}


async def fill(backend: Backend, markers: MarkerSettings) -> None:
    async with begin(backend, markers=markers, sizing=SIZING) as job:
        await job.commit([await write_planned(job, backend, MINE)])


async def lose_what_was_filled(backend: Backend, markers: MarkerSettings) -> None:
    """Another write fills the same files meanwhile, which has not looked who else does."""
    assert isinstance(backend, DyingBackend)
    others = backend.inner
    async with begin(backend, markers=markers, sizing=SIZING) as job:
        report = await write_planned(job, backend, MINE)
        claims = [entry.path async for entry in others.list(".hoodie/.temp") if entry.path.endswith("/FILLS")]
        await others.delete(claims)
        async with begin(others, sizing=SIZING) as rival:
            await rival.commit([await write_planned(rival, others, RIVAL)])
        await job.commit([report])


async def leave_what_was_filled(backend: Backend, markers: MarkerSettings) -> None:
    async with begin(backend, markers=markers, sizing=SIZING) as job:
        await write_planned(job, backend, MINE)


@pytest.fixture(autouse=True)
def no_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Virtual time does not wait for any."""

    async def at_once(code, *arguments):
        return code(*arguments)

    monkeypatch.setattr(lost_fills, "_in_thread", at_once)


def held(objects: Mapping[str, bytes]) -> list[int]:
    return sorted(row["flight"] for row in rows_in(objects))


def flights(*writes: Months) -> list[int]:
    return sorted(flight for months in writes for some in months.values() for flight in some)


def check_rescued(store: Store, writes: Sequence[Months]) -> None:
    """``writes`` are those that may have been committed, in the order of the log."""
    store.clock.pass_lease()
    anyio.run(appended, store.backend, NEXT, backend="trio")
    store.check_at_rest()
    found = set(held(store.objects))
    committed = [months for months in (BEFORE, *writes, NEXT) if found & set(flights(months))]
    assert held(store.objects) == flights(*committed), "rows are missing, or there twice"
    assert len(committed) == len(store.commits), "a commit without its rows"


@pytest.mark.parametrize(
    ("writer", "kind", "writes"),
    [
        (fill, "batched", (MINE,)),
        (leave_what_was_filled, "direct", (MINE,)),
        (lose_what_was_filled, "batched", (RIVAL, MINE)),
        (lose_what_was_filled, "direct", (RIVAL, MINE)),
    ],
)
def test_wherever_a_writer_that_fills_dies_the_next_one_leaves_each_committed_row_once(store, writer, kind, writes):
    anyio.run(appended, store.backend, BEFORE, backend="trio")
    whole = copied(store)
    run_to_death(whole, writer, kind, at=None)
    kinds = [entry["kind"] for entry in whole.decisions.values()]
    assert kinds == ["commit", *("rollback" if writer is leave_what_was_filled else "commit" for _ in writes)]
    wherever_it_dies(store, writer, kind, partial(check_rescued, writes=writes))
