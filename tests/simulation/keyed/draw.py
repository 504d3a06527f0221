"""Variation of a drawn plan: the table has a record key, and some of its writers write by it."""

import random
from dataclasses import replace
from typing import Any

from tests.simulation.plan import (
    TASK_LANDMARKS,
    AttemptPlan,
    Mishap,
    Plan,
    TaskPlan,
    WriterPlan,
    draw_host,
    draw_mishap,
)

STEP_LANDMARKS = (*TASK_LANDMARKS, ("put", "/KEYS/"), ("get", "/KEYS/"), ("get", ".parquet"))
"""Of attempts: between segments of keys, in a lookup, and in a merge."""

LAST_LANDMARKS = (("put", "/seal/"), ("put", "/fence/"), ("get", "/KEYS/"), ("get", "/KEYS/"), ("put", "/log/"))
"""Of a driver whose tasks are over: before it looks keys up in late files, in that and after it, and at its entry."""

SHARE = 1 / 8
"""Of the tables."""


def with_keys(chance: random.Random, plan: Plan) -> Plan:
    """Give some tables a key, of which most writers change rows; in half of them others overtake one of these."""
    if chance.random() >= SHARE:
        return plan
    unique_in: Any = chance.choice(("partition", "partition", "table"))
    if plan.replacement is None and chance.random() < 1 / 2:
        writers = _race(chance, plan, unique_in)
    else:
        twins = _changes(chance)
        writers = [
            _by_key(chance, writer, unique_in, twins if writer.txn else _changes(chance))
            if writer.txn or chance.random() < 3 / 4
            else writer
            for writer in plan.writers
        ]
    has_past = plan.has_past or any(writer.mode == "delete" for writer in writers)
    return replace(plan, writers=tuple(writers), unique_in=unique_in, has_past=has_past)


def _changes(chance: random.Random) -> dict[str, Any]:
    mode = chance.choice(("upsert", "upsert", "upsert", "delete"))
    matched = chance.choice(("update", "update", "delete some", "keep")) if mode == "upsert" else "update"
    return {"mode": mode, "matched": matched, "drifts": chance.random() < 1 / 12}


def _by_key(chance: random.Random, writer: WriterPlan, unique_in: str, changes: dict[str, Any]) -> WriterPlan:
    writer = replace(writer, **changes, read_before_s=None, tasks=tuple(_task(chance, task) for task in writer.tasks))
    # Where a key is unique in the table, a row may be in any partition.
    return writer if unique_in == "partition" else replace(writer, month=None, year=None)


def _task(chance: random.Random, task: TaskPlan) -> TaskPlan:
    """Return the task, an attempt of which may have a mishap at a step of a write by key."""
    first, *others = task.attempts
    if chance.random() < 1 / 6:
        mishap = draw_mishap(chance, {"killed", "stopped"}, probability=1.0, steps=100, landmarks=STEP_LANDMARKS)
        first = replace(first, mishap=mishap, row_s=min(first.row_s, 1.0))
        others = others or [replace(first, mishap=None, start_s=chance.choice((0.0, 1.0)))]
    return replace(task, attempts=(first, *others))


def _race(chance: random.Random, plan: Plan, unique_in: str) -> list[WriterPlan]:
    """Return a writer that is slow, or halts shortly before its entry, and quick ones that may overtake it."""
    request_s = plan.faults.put_s
    slow, *_ = plan.writers
    tasks = tuple(_simple(chance, chance.choice((0.0, 0.1, 1.0))) for _ in range(chance.choice((1, 2))))
    changes = {"drifts": False} if slow.mode == "overwrite" and chance.random() < 1 / 3 else _changes(chance)
    what: Any = chance.choice(("stopped",) * 6 + ("killed", "cancelled"))
    for_s = min(100.0, request_s * chance.choice((100, 300, 1000)))
    landmark = chance.choice(LAST_LANDMARKS)
    halted = Mishap(what=what, at_step=chance.choice((0, 0, 1, 2, 4)), after=landmark, for_s=for_s)
    slow = replace(slow, tasks=tasks, txn=None, raises=False, month=None, year=None, mishap=halted)
    writers = [_by_key(chance, slow, unique_in, changes) if "mode" in changes else slow]
    for _ in range(chance.choice((1, 2, 2, 3))):
        start_s = slow.start_s + request_s * chance.choice((10, 30, 60, 100, 200)) * (0.5 + chance.random())
        changes = _changes(chance) if chance.random() < 3 / 4 else {"mode": "append"}
        tasks = (_simple(chance, 0.0),)
        quick = replace(slow, host=draw_host(chance), start_s=start_s, mishap=None, tasks=tasks, read_before_s=None)
        writers.append(replace(quick, **changes))
    return writers


def _simple(chance: random.Random, row_s: float) -> TaskPlan:
    months = tuple(chance.choice((1, 2, 2, 3, 3)) for _ in range(chance.choice((1, 2))))
    return TaskPlan(months=months, attempts=(AttemptPlan(host=draw_host(chance), start_s=0.0, row_s=row_s),))
