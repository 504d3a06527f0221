"""What each process of a chaos run does: drawn by seed, so that a round can be played again with the same plans."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count
from random import Random
from typing import Literal, TypedDict

from tallymark import CommitSettings, LeaseSettings, StorageOptions
from tallymark.engine.jobs.request import WriteOptions
from tests.system.pool_worker import Row, TaskPlan

Mode = Literal["append", "dynamic overwrite", "static overwrite", "whole overwrite"]
Care = Literal["none", "clean", "rollback", "checkpoint"]

PARTS = ("a", "b", "c", "d")
SECONDS_OF_HOUR = 3600.0


class Made(TypedDict):
    readers: Literal["directory", "table"]
    retain_hours: float | None


TABLES: dict[str, Made] = {
    "plain": {"readers": "directory", "retain_hours": None},
    "kept": {"readers": "table", "retain_hours": 2 / SECONDS_OF_HOUR},
    "leased": {"readers": "table", "retain_hours": 0.0},
}
"""Of the last, nothing but leases keeps what readers read."""

COMMIT = CommitSettings(
    decision_timeout_s=4,
    end_timeout_s=60,
    retry_pause_s=0.1,
    clean_overdue_ratio=0,
    zombie_after_s=60,
    log_entry_count=24,
    timeline_commit_count=6,
)
"""Short, so that some writers give up before they know. Fences are swept while the round goes on; no request of the
proxy lands as late as that."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobPlan:
    """One write."""

    number: int
    table: str
    mode: Mode
    tasks: tuple[TaskPlan, ...]
    fills: bool = False
    txn: str | None = None
    is_direct: bool = False
    in_processes: bool = False
    """Its tasks are forked processes, which the director may kill; otherwise threads."""
    has_twins: bool = False
    """The first task runs twice, and the report that comes first is committed."""
    is_left: bool = False
    """The block ends without a commit."""
    fallback: bool = True
    skew_s: float = 0.0
    """Of the writer's wall clock."""
    care: Care = "none"
    """What the writer does for the table afterwards."""

    @property
    def rows(self) -> list[Row]:
        return [row for task in self.tasks for row in task.rows]

    @property
    def request(self) -> WriteOptions:
        """What ``write`` is called with, beside the mode."""
        made = TABLES[self.table]
        request = WriteOptions(
            partition_by=["part"],
            txn=self.txn,
            readers=made["readers"],
            retain_hours=made["retain_hours"],
            partition_overwrite="dynamic" if self.mode == "dynamic overwrite" else "static",
        )
        if self.mode == "static overwrite":
            request["partition"] = {"part": self.tasks[0].parts[0]}
        return request

    def replaces(self, part: str) -> bool:
        """Whether its commit replaces what its base held in that part."""
        if self.mode == "append":
            return False
        return self.mode == "whole overwrite" or any(part in task.parts for task in self.tasks)


@dataclass(frozen=True, slots=True, kw_only=True)
class Life:
    """What one process does from its start to its end: it writes, or, without jobs, it reads."""

    folder: str
    """Of this round: journals, and the file ``stop`` that ends all lives."""
    name: str
    tables: dict[str, str]
    """Name to URL."""
    options: StorageOptions
    lease: LeaseSettings
    jobs: tuple[JobPlan, ...] = ()
    loop: Literal["trio", "asyncio"] = "trio"
    host: str | None = None
    """In place of this machine's name: then only its lease tells that the process is dead."""


@dataclass(slots=True)
class Plans:
    """Plans of a round; ``all`` has those that were drawn, by number."""

    random: Random
    all: dict[int, JobPlan] = field(default_factory=dict)
    _numbers: Iterator[int] = field(default_factory=lambda: count(1))

    def jobs(self) -> tuple[JobPlan, ...]:
        """Those of one life; now and then an earlier one with a txn is run again, as it was declared."""
        drawn = []
        for _ in range(self.random.randint(2, 8)):
            reruns = [plan for plan in self.all.values() if plan.txn]
            drawn.append(self.random.choice(reruns[-20:]) if reruns and self.random.random() < 0.15 else self._draw())
        return tuple(drawn)

    def _draw(self) -> JobPlan:
        random, number = self.random, next(self._numbers)
        mode: Mode = random.choices(
            ("append", "dynamic overwrite", "static overwrite", "whole overwrite"), (12, 5, 3, 1)
        )[0]
        parts = tuple(sorted(random.sample(PARTS, 1 if mode == "static overwrite" else random.randint(1, 3))))
        tasks = tuple(
            TaskPlan(
                task=task,
                first_id=number * 10_000 + task * 1000,
                parts=parts,
                row_count=random.choice((2, 4, 20)),
                width=random.choice((20, 400, 4000)),
                stops=random.choices(("never", "in mid file", "between files"), (12, 2, 1))[0],
            )
            for task in range(random.randint(1, 3))
        )
        plan = JobPlan(
            number=number,
            table=random.choice([*TABLES]),
            mode=mode,
            tasks=tasks,
            fills=mode == "append" and random.random() < 0.5,
            txn=f"chaos:{number}" if random.random() < 0.3 else None,
            is_direct=random.random() < 0.25,
            in_processes=random.random() < 0.6,
            has_twins=random.random() < 0.2,
            is_left=random.random() < 0.08,
            fallback=random.random() < 0.7,
            skew_s=random.choice((0.0, 0.0, random.uniform(-4, 4) * 86_400)),
            care=random.choices(("none", "clean", "rollback", "checkpoint"), (7, 1, 1, 1))[0],
        )
        self.all[number] = plan
        return plan
