"""A job that is run again after its death at each of its calls to storage, and twins that are run at once: the rows are
there once."""

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tallymark.backends import Backend
from tallymark.engine.jobs.result import WriteResult
from tallymark.engine.settings import MarkerKind, MarkerSettings
from tallymark.engine.timeline.log import LOG_FOLDER
from tests.engine.jobs.deaths import Writer, run_to_death, wherever_it_dies
from tests.engine.jobs.scene import FAMILIES_BY_COST, Store, begin, committed, table, write_rows
from tests.engine.jobs.test_crash_anywhere import clean, filled
from tests.support.examples import examples
from tests.support.faulty import Fault, FaultyBackend, lost_answer, lost_request, slow
from tests.support.loops import on_virtual_time
from tests.table_invariants import one_decision_an_instant, projection_is_a_prefix_of_the_log

pytestmark = pytest.mark.no_cover

TXN = "night:7"
families = pytest.mark.parametrize("has_staging", FAMILIES_BY_COST)


async def append(backend: Backend, markers: MarkerSettings) -> None:
    await committed(backend, "append", {1: 2, 3: 1}, txn=TXN, markers=markers)


async def overwrite(backend: Backend, markers: MarkerSettings) -> None:
    await committed(backend, "overwrite", {1: 2, 3: 1}, txn=TXN, markers=markers, partition_overwrite="dynamic")


HELD: dict[Writer, dict[str, int]] = {append: {"month=1": 4, "month=2": 2, "month=5": 1, "month=3": 1}}
HELD[overwrite] = {**HELD[append], "month=1": 2}
"""Rows of each month once the job is committed: the first and the second month held two, the fifth one."""


def committed_once(store: Store, txn: str = TXN) -> None:
    """The log holds exactly one commit of the txn."""
    assert [entry["txn"] for entry in store.commits].count(txn) == 1


def held(store: Store) -> dict[str, int]:
    found: dict[str, int] = {}
    for file in anyio.run(table(store.backend).snapshot, backend="trio").files:
        found[file.partition] = found.get(file.partition, 0) + file.rows
    return found


def run_again(store: Store, writer: Writer, kind: MarkerKind = "batched") -> None:
    """A rerun after a lease, and what it must leave."""
    store.clock.pass_lease()
    run_to_death(store, writer, kind, at=None)
    committed_once(store)
    assert held(store) == HELD[writer]


@families
@pytest.mark.parametrize("kind", ["batched", "direct"])
@pytest.mark.parametrize("writer", [append, overwrite])
def test_wherever_a_job_dies_its_rerun_leaves_its_rows_once(writer, kind: MarkerKind, has_staging):
    def check(store: Store) -> None:
        projection_is_a_prefix_of_the_log(store.objects)
        run_again(store, writer, kind)
        store.check_at_rest()

    wherever_it_dies(filled(Store(has_staging=has_staging)), writer, kind, check)


@families
def test_wherever_the_rerun_dies_too_the_next_one_leaves_the_rows_once(has_staging):
    """Each death of the rerun, after deaths of the first run before, at and after its entry."""

    def check(store: Store) -> None:
        run_again(store, overwrite)
        store.check_projection()
        store.check_only_committed_files()
        store.clock.pass_lease()  # a rerun that died may have left its own beat, which a later write sweeps
        run_to_death(store, clean, "batched", at=None)
        store.check_at_rest()

    def check_left(left: Store) -> None:
        left.clock.pass_lease()
        wherever_it_dies(left, overwrite, "batched", check, calls_min=1)

    wherever_it_dies(filled(Store(has_staging=has_staging)), overwrite, "batched", check_left, first=8, step=8)


pauses = st.sampled_from([0.0, 0.01, 0.02, 0.5])
entry_faults: st.SearchStrategy[Fault] = st.one_of(
    st.builds(lambda nth: lost_answer("put_new", f"{LOG_FOLDER}/*", nth=nth), st.integers(1, 3)),
    st.builds(lambda nth: lost_request("put_new", f"{LOG_FOLDER}/*", nth=nth), st.integers(1, 3)),
    st.builds(
        lambda nth, before_s, after_s: slow("put_new", before_s, f"{LOG_FOLDER}/*", nth=nth, after_s=after_s),
        st.integers(1, 3),
        pauses,
        pauses,
    ),
)
stories = st.tuples(pauses, pauses, st.lists(entry_faults, max_size=3))
"""When a job begins, how long its tasks take, and what happens to its requests to the log."""


@families
@settings(max_examples=examples(60))
@given(first=stories, second=stories, third=stories, mode=st.sampled_from(["append", "overwrite"]))
def test_of_jobs_of_one_txn_at_once_exactly_one_commits(has_staging, first, second, third, mode):
    store = Store(has_staging=has_staging)
    results: list[WriteResult] = []

    async def job(begins_s: float, works_s: float, faults: list[Fault]) -> None:
        await anyio.sleep(begins_s)
        storage = FaultyBackend(store.backend, *faults)
        async with begin(storage, mode, txn=TXN) as job:
            await anyio.sleep(works_s)
            results.append(await job.commit([await write_rows(job, storage)]))

    @on_virtual_time
    async def all_at_once() -> None:
        await committed(store.backend)
        async with anyio.create_task_group() as twins:
            for story in (first, second, third):
                twins.start_soon(job, *story)

    all_at_once()
    committed_once(store)
    one_decision_an_instant(store.objects)
    assert {entry["kind"] for entry in store.decisions.values()} <= {"commit", "rollback"}
    assert [result.is_rerun for result in results].count(False) == 1, "one has written it, the others were told so"
    assert len({(result.instant, result.position, result.rows) for result in results}) == 1
    assert sum(held(store).values()) == (10 if mode == "append" else 5)
    store.check_at_rest()
