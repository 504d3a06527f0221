"""Any interleaving of appends and overwrites, with bases and without, leaves what a plain model of rows says."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pytest
import trio
import trio.testing
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from tallymark.engine.jobs.write_job import WriteJob
from tallymark.engine.tasks.report import TaskReport
from tests.engine.jobs.fill_histories import Block, Running
from tests.engine.jobs.scene import Store, mark, name_of, publish
from tests.engine.jobs.yearly import BY, begin, flights, held
from tests.support.examples import examples
from tests.table_invariants import overwrites_replace_what_their_base_held

pytestmark = pytest.mark.no_cover

LEAVES = ((2013, 1), (2013, 2), (2014, 1), (20130, 1))
Leaf = tuple[int, int]

PARTS: tuple[tuple[int, ...], ...] = ((), (2013,), (2014,), (20130,), *LEAVES)
"""What a static partition may name: nothing, a year, or a month of one."""


@dataclass(frozen=True)
class Call:
    """One write, as its caller says it."""

    mode: str
    is_dynamic: bool
    part: tuple[int, ...]
    leaves: frozenset[Leaf]
    """The input has a row for each of those that lie in ``part``."""
    read_at: int | None
    """A number that picks the base among the positions there are; None: no base is given."""

    @property
    def rows_for(self) -> list[Leaf]:
        return sorted(leaf for leaf in self.leaves if leaf[: len(self.part)] == self.part)

    def replaces(self, leaf: Leaf) -> bool:
        """The documentation's rule: rows decide only where a partition column is left open."""
        if self.mode == "append":
            return False
        if self.is_dynamic and len(self.part) < len(BY):
            return leaf in self.rows_for
        return leaf[: len(self.part)] == self.part

    def overlaps(self, other: "Call") -> bool:
        """Whether both replace a common partition, be it one that nobody has made."""
        wide = [call for call in (self, other) if call.mode == "overwrite" and not call.chooses]
        if len(wide) == 2:
            short, long = sorted((self.part, other.part), key=len)
            return long[: len(short)] == short
        return any(self.replaces(leaf) and other.replaces(leaf) for leaf in LEAVES)

    @property
    def chooses(self) -> bool:
        return self.is_dynamic and len(self.part) < len(BY)


@dataclass
class Model:
    """Each commit's rows by partition, position by position. A row is a number, and is of the commit that added it."""

    states: list[dict[int, Leaf]] = field(default_factory=lambda: [{}])
    log: list[tuple[Call, set[int]] | None] = field(default_factory=list)
    """What each position replaced; None for a rollback."""

    def commit(self, call: Call, base: int, rows: dict[int, Leaf]) -> bool:
        """False if it conflicts: nothing has changed but that a rollback is noted."""
        gone = {row for row, leaf in self.states[base].items() if call.replaces(leaf)}
        since = [found for found in self.log[base:] if found is not None]
        if any(call.overlaps(theirs) or gone & replaced for theirs, replaced in since):
            self.roll_back()
            return False
        now = {row: leaf for row, leaf in self.states[-1].items() if row not in gone}
        self.states.append({**now, **rows})
        self.log.append((call, gone))
        return True

    def roll_back(self) -> None:
        self.states.append(self.states[-1])
        self.log.append(None)


calls = st.builds(
    Call,
    mode=st.sampled_from(["append", "overwrite", "overwrite", "overwrite"]),
    is_dynamic=st.booleans(),
    part=st.sampled_from([*PARTS, (2013,), (2013,), (2013, 1)]),
    leaves=st.frozensets(st.sampled_from(LEAVES)),
    read_at=st.none() | st.integers(0, 9),
)


def block(store: Store, call: Call, base: int | None) -> Block:
    named: dict[str, Any] = {"partition": dict(zip(BY, call.part, strict=False))} if call.part else {}
    how = "dynamic" if call.is_dynamic else "static"
    begun: Block = begin(store.backend, call.mode, base=base, partition_overwrite=how, **named)
    return begun


async def write(store: Store, rows: dict[int, Leaf], job: WriteJob) -> list[TaskReport]:
    paths = {f"year={leaf[0]}/month={leaf[1]}/{name_of(job)}": (row, *leaf) for row, leaf in rows.items()}
    await mark(job, store.backend, paths)
    files = tuple(publish(job.ticket, store.backend, path, flights([row])) for path, row in paths.items())
    return [TaskReport(instant=job.instant, task=0, attempt=0, files=files)]


FULL = Call("append", is_dynamic=False, part=(), leaves=frozenset(LEAVES), read_at=None)
"""Fills each partition before the others begin: else most of them would replace nothing."""


async def _play(store: Store, rounds: Sequence[Sequence[tuple[Call, int]]]) -> None:
    """In each round jobs begin in their order, and commit in that of the numbers beside them."""
    model, row = Model(), 0
    for round_ in rounds:
        async with trio.open_nursery() as nursery:
            jobs = []
            for call, turn in round_:
                head = len(model.states) - 1
                base = None if call.read_at is None or call.mode == "append" else call.read_at % (head + 1)
                rows = {(row := row + 1): leaf for leaf in call.rows_for}
                job = Running(block(store, call, base), partial(write, store, rows))
                await nursery.start(job.run)
                jobs.append((turn, call, head if base is None else base, rows, job))
            for _, call, base, rows, job in sorted(jobs, key=lambda one: one[0]):
                is_committed = await job.end() is not None
                stands = model.commit(call, base, rows)
                event("commits" if stands else "conflicts")
                assert is_committed == stands, f"{call} on base {base}: the model says {stands}"
        assert held(store.objects) == sorted((number, *leaf) for number, leaf in model.states[-1].items())


@settings(max_examples=examples(150), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    rounds=st.lists(st.lists(st.tuples(calls, st.integers(0, 9)), min_size=1, max_size=4), min_size=1, max_size=3),
    has_staging=st.booleans(),
)
def test_the_table_is_what_the_model_says(rounds, has_staging):
    store = Store(has_staging=has_staging)
    trio.run(_play, store, [[(FULL, 0)], *rounds], clock=trio.testing.MockClock(autojump_threshold=0))
    overwrites_replace_what_their_base_held(store.objects)
    store.check_at_rest()
