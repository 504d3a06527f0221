"""Writers at once on storage that is slow here and there, some of which die or are taken for dead, and their zombies.

Hypothesis draws who does what and when; time is virtual, and the same for the store. At the end of each run the table
is put in order, and judged from its bare objects.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import anyio
import trio
import trio.testing
from hypothesis import given, settings
from hypothesis import strategies as st

from tallymark.backends import Backend
from tallymark.backends.errors import AlreadyExists, NotFound
from tallymark.engine.errors import CommitUnknown, ConflictError, RolledBack, TallymarkError
from tallymark.engine.settings import MarkerKind, MarkerSettings
from tests.engine.writes.scene import Store, begin, committed, flights, mark, name_of, publish, table, write_rows
from tests.support.dying import DyingBackend, ProcessDied
from tests.table_invariants import (
    commits,
    committed_files,
    data_files,
    decisions,
    fences,
    projection_is_a_prefix_of_the_log,
    table_is_at_rest,
)

MONTHS = st.dictionaries(st.integers(1, 3), st.integers(1, 2), min_size=0, max_size=2)
DELAYS = st.lists(st.sampled_from([0.0, 0.0, 0.0, 0.01, 0.5, 3.0, 20.0, 70.0, 130.0]), min_size=1, max_size=12)


@dataclass(frozen=True)
class Plan:
    """One writer: what it writes, and what befalls it."""

    start_s: float
    mode: str
    dynamic: bool
    kind: MarkerKind
    months: dict[int, int]
    delays: list[float]
    """Seconds before its calls reach storage, one after the other and round again."""
    dies_at: int | None
    raises: bool
    zombie_s: float | None
    """When one of its tasks, whose marker was acked, publishes after all."""


PLANS = st.builds(
    Plan,
    start_s=st.sampled_from([0.0, 0.0, 1.0, 30.0, 150.0]),
    mode=st.sampled_from(["append", "overwrite"]),
    dynamic=st.booleans(),
    kind=st.sampled_from(["batched", "direct"]),
    months=MONTHS,
    delays=DELAYS,
    dies_at=st.one_of(st.none(), st.integers(1, 60)),
    raises=st.sampled_from([False, False, False, True]),
    zombie_s=st.sampled_from([None, 0.0, 5.0, 60.0, 400.0]),
)


class VirtualClock:
    """Everybody's wall clock: right to the microsecond."""

    def now(self) -> datetime:
        return datetime(2026, 11, 21, tzinfo=UTC) + timedelta(seconds=anyio.current_time())


def slowed(inner: Backend, delays: list[float]) -> Any:
    return SlowBackend(inner, delays)


class SlowBackend:
    """Each call reaches storage some time after it was made."""

    def __init__(self, inner, delays: list[float]) -> None:
        self._inner = inner
        self._delays = delays
        self._count = 0
        self.url = inner.url
        self.has_staging = inner.has_staging
        self.new_file = inner.new_file

    def __getattr__(self, verb: str) -> Callable[..., Awaitable[object]]:
        async def call(*arguments):
            await self._delay()
            return await getattr(self._inner, verb)(*arguments)

        return call

    async def list(self, directory: str) -> AsyncIterator[object]:
        await self._delay()
        for entry in [entry async for entry in self._inner.list(directory)]:
            yield entry

    async def _delay(self) -> None:
        self._count += 1
        await anyio.sleep(self._delays[self._count % len(self._delays)])


@dataclass
class Outcome:
    plan: Plan
    instant: str | None = None
    end: str = "running"
    error: BaseException | None = None
    landed: list[str] = field(default_factory=list)
    """What its zombies published."""


async def write(store: Store, plan: Plan, outcome: Outcome, zombies: anyio.abc.TaskGroup) -> None:
    await anyio.sleep(plan.start_s)
    storage = DyingBackend(slowed(store.backend, plan.delays), at=plan.dies_at)
    overwrite = "dynamic" if plan.dynamic else "static"
    try:
        target = table(storage, clock=VirtualClock())
        markers = MarkerSettings(kind=plan.kind)
        async with begin(target, plan.mode, partition_overwrite=overwrite, markers=markers) as job:
            outcome.instant = job.instant
            lost = f"month=1/{name_of(job, attempt=9)}"
            await mark(job, storage, [lost])
            if plan.zombie_s is not None:
                zombies.start_soon(publish_late, store, job.ticket, lost, plan.zombie_s, outcome)
            reports = [await write_rows(job, storage, plan.months)] if plan.months else []
            await write_rows(job, storage, plan.months, attempt=1)
            if plan.raises:
                raise ZeroDivisionError
            await job.commit(reports)
            outcome.end = "committed"
    except ZeroDivisionError:
        outcome.end = "raised"
    except (ConflictError, RolledBack, CommitUnknown) as error:
        outcome.end, outcome.error = type(error).__name__, error
    except (TallymarkError, BaseExceptionGroup, ProcessDied) as error:
        outcome.error = error
        if outcome.end != "committed":
            outcome.end = "died" if storage.is_dead else "failed"


async def publish_late(store: Store, ticket, path: str, after_s: float, outcome: Outcome) -> None:
    await anyio.sleep(after_s)
    try:
        publish(ticket, store.backend, path, flights({1: 1}))
    except (NotFound, AlreadyExists):
        return
    outcome.landed.append(path)


def run(has_staging: bool, plans: list[Plan]) -> tuple[Store, list[Outcome]]:
    store = Store(has_staging=has_staging)
    outcomes = [Outcome(plan) for plan in plans]

    async def main() -> None:
        store.backend._now = lambda: 1e6 + anyio.current_time()
        await committed(store.backend, months={1: 1, 2: 1}, clock=VirtualClock())
        async with anyio.create_task_group() as zombies:
            async with anyio.create_task_group() as writers:
                for plan, outcome in zip(plans, outcomes, strict=True):
                    writers.start_soon(write, store, plan, outcome, zombies)
            projection_is_a_prefix_of_the_log(store.objects)
            await anyio.sleep(300)
            await committed(store.backend, months={3: 1}, clock=VirtualClock())
            await table(store.backend).clean()
        await table(store.backend).clean()

    trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0))
    return store, outcomes


@settings(max_examples=60, deadline=None)
@given(st.booleans(), st.lists(PLANS, min_size=1, max_size=4))
def test_whatever_befalls_writers_the_table_holds_what_was_committed_and_nothing_else(has_staging, plans):
    store, outcomes = run(has_staging, plans)
    table_is_at_rest(store.objects)
    no_file_is_removed_twice(store)
    for outcome in outcomes:
        outcome_is_what_the_log_says(store, outcome)


def no_file_is_removed_twice(store: Store) -> None:
    """Each entry removed only what the table held then: two overwrites that meet are never both let through."""
    live: set[str] = set()
    for entry in commits(store.objects):
        removed = {f"{file[0]}/{file[1]}" for file in entry["removed"]}
        assert removed <= live, f"{entry['instant']} removes what is not there: {removed - live}"
        live = live - removed | {f"{file[0]}/{file[1]}" for file in entry["added"]}
    assert live == committed_files(store.objects)


def outcome_is_what_the_log_says(store: Store, outcome: Outcome) -> None:
    entry = None if outcome.instant is None else decisions(store.objects).get(outcome.instant)
    kind = None if entry is None else entry["kind"]
    if outcome.end == "committed":
        assert kind == "commit", outcome
    elif outcome.end in ("raised", "ConflictError", "RolledBack", "failed"):
        assert kind in ("rollback", None), outcome
    if outcome.instant is not None:
        assert kind is not None, f"left undecided: {outcome}"
    left = set(outcome.landed) & data_files(store.objects)
    assert left <= committed_files(store.objects) | fences(store.objects)


def test_the_simulation_meets_conflicts_commits_and_rollbacks():
    """Else it would show nothing."""
    calm: Any = {"start_s": 0.0, "kind": "direct", "delays": [0.01], "dies_at": None, "raises": False, "zombie_s": 60.0}
    plan = Plan(mode="overwrite", dynamic=False, months={1: 1}, **calm)
    _, outcomes = run(False, [plan, plan, Plan(mode="append", dynamic=False, months={1: 1}, **{**calm, "dies_at": 30})])
    assert sorted(outcome.end for outcome in outcomes) == ["ConflictError", "committed", "died"]
