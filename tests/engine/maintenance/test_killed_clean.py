"""A clean dies at each of its calls to storage in turn; whoever comes next finishes it, and no reader misses a file."""

from collections.abc import Sequence
from typing import Any

import anyio
import pytest

from tallymark.backends import Backend
from tallymark.engine.settings import MarkerSettings
from tallymark.engine.timeline.reader_lease import Reader
from tallymark.engine.timeline.writer_identity import WriterIdentity
from tests.engine.jobs.deaths import copied, each_death, run_to_death, told_where, without_probes
from tests.engine.jobs.scene import FAMILIES_BY_COST, LEASE, Store, TickingClock, committed, table
from tests.table_invariants import file_path, projection_is_a_prefix_of_the_log, table_is_at_rest

pytestmark = pytest.mark.no_cover

HOUR_S = 3600.0

A_DAY_LATER = TickingClock()
A_DAY_LATER.pass_s(26 * HOUR_S)


async def clean(backend: Backend, markers: MarkerSettings) -> None:
    await table(backend).clean()


async def append(backend: Backend, markers: MarkerSettings) -> None:
    """A write that cleans at its end."""
    await committed(backend, months={8: 1}, markers=markers, clock=A_DAY_LATER)


def store_with_due_files(*, has_staging: bool) -> Store:
    """Two overwrites of a day ago, and one of two hours ago, whose replaced files are to stay."""
    store = Store(has_staging=has_staging)

    async def write() -> None:
        await committed(store.backend, months={1: 2, 2: 2, 5: 1}, readers="table", retain_hours=24)
        await committed(store.backend, "overwrite", {1: 1}, partition_overwrite="dynamic")
        await committed(store.backend, "overwrite", {2: 1}, partition_overwrite="dynamic")
        store.clock.now += 23 * HOUR_S
        await committed(store.backend, "overwrite", {5: 1}, partition_overwrite="dynamic")
        store.clock.now += 2 * HOUR_S  # a write waits with its clean until something is overdue

    anyio.run(write, backend="trio")
    assert len(store.retained_files) == 3
    return store


def nothing_needed_is_gone(store: Store) -> None:
    """Every file of every position from the horizon on is there: what is live, and what was replaced later."""
    entries, there = store.log_entries, store.data_files
    horizon = max(entry["horizon"] for entry in entries)
    for position in range(horizon, len(entries) + 1):
        missing = files_after(entries[:position]) - there
        assert not missing, f"position {position}, with a horizon of {horizon}, misses {missing}"


def files_after(entries: Sequence[dict[str, Any]]) -> set[str]:
    files: set[str] = set()
    for entry in entries:
        files = (files - set(map(file_path, entry["removed"]))) | set(map(file_path, entry["added"]))
    return files


@pytest.mark.parametrize("next_one", [clean, append], ids=["clean", "write"])
@pytest.mark.parametrize("has_staging", FAMILIES_BY_COST)
@pytest.mark.parametrize("cleaner", [clean, append], ids=["clean", "write"])
def test_wherever_a_clean_dies_the_next_one_finishes_it(cleaner, has_staging, next_one):
    start = store_with_due_files(has_staging=has_staging)
    for store, where in each_death(start, cleaner, "direct"):
        with told_where(where):
            nothing_needed_is_gone(store)
            projection_is_a_prefix_of_the_log(store.objects)
            store.clock.pass_lease()
            run_to_death(store, next_one, "direct", at=None)
            assert len(store.retained_files) == 1
            table_is_at_rest(store.objects if next_one is clean else without_probes(store))
            nothing_needed_is_gone(store)


@pytest.mark.parametrize("has_staging", FAMILIES_BY_COST)
def test_wherever_a_clean_beside_readers_dies_what_they_hold_stays_and_the_rest_goes(has_staging):
    """One lives, and holds position 2; one is dead, and holds nothing, and its lease goes."""
    start = store_with_due_files(has_staging=has_staging)
    dead, living = reader(position=0), reader(position=2)
    anyio.run(start.backend.put, dead.path, dead.encode(), backend="trio")
    start.clock.pass_lease()
    anyio.run(start.backend.put, living.path, living.encode(), backend="trio")
    held = files_after(start.log_entries[:2])
    for store, where in each_death(start, clean, "direct"):
        with told_where(where):
            store.clock.pass_lease()
            anyio.run(store.backend.put, living.path, living.encode(), backend="trio")
            run_to_death(store, clean, "direct", at=None)
            assert held <= store.data_files
            assert len(store.retained_files) == 2
            assert dead.path not in store.objects
            store.clock.pass_lease()
            run_to_death(store, clean, "direct", at=None)
            assert len(store.retained_files) == 1
            store.check_at_rest()


def reader(*, position: int) -> Reader:
    """On another machine: only its beats tell whether it lives."""
    process = WriterIdentity(host="elsewhere", boot_id="b", pid_namespace="p", pid=7, started="7")
    return Reader(nonce=f"at{position}", position=position, process=process, expiry_s=LEASE.expiry_s)


@pytest.mark.parametrize("has_staging", FAMILIES_BY_COST)
def test_wherever_the_next_clean_dies_too_the_third_finishes_it(has_staging):
    start = store_with_due_files(has_staging=has_staging)
    for first in range(10, run_to_death(copied(start), clean, "direct", at=None).count, 4):
        left = copied(start)
        run_to_death(left, clean, "direct", at=first)
        left.clock.pass_lease()
        for store, where in each_death(left, clean, "direct"):
            with told_where(f"the first died after call {first}, the second {where}"):
                nothing_needed_is_gone(store)
                store.clock.pass_lease()
                run_to_death(store, clean, "direct", at=None)
                assert len(store.retained_files) == 1
                store.check_at_rest()
