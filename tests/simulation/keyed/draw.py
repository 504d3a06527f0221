"""Variation of a drawn plan: the table has a record key, and some of its writers write by it."""

import random
from dataclasses import replace
from typing import Any

from tests.simulation.plan import (
    LANDMARKS,
    TASK_LANDMARKS,
    Mishap,
    Plan,
    TaskPlan,
    WriterPlan,
    draw_host,
    draw_mishap,
)

KEY_LANDMARKS = (("get", "/KEYS/"), ("get", "/KEYS/"), ("get", ".parquet"), ("put", "/log/"), ("put", "/log/"))
"""Of a driver: while it looks keys up in late files, after that, and at its entry."""

STEP_LANDMARKS = (*TASK_LANDMARKS, ("put", "/KEYS/"), ("get", "/KEYS/"), ("get", ".parquet"))
"""Of attempts: between segments of keys, in a lookup, and in a merge."""

SHARE = 1 / 8
"""Of the tables."""

KINDS = {"killed", "stopped", "cancelled"}


def with_keys(chance: random.Random, plan: Plan) -> Plan:
    """Give some tables a key, of which most writers change rows, some of them at once."""
    if chance.random() >= SHARE:
        return plan
    unique_in: Any = chance.choice(("partition", "partition", "table"))
    twins = _changes(chance)
    writers = [
        _by_key(chance, writer, unique_in, twins if writer.txn else _changes(chance))
        if writer.txn or chance.random() < 3 / 4
        else writer
        for writer in plan.writers
    ]
    if writers[0].is_keyed and chance.random() < 1 / 2:
        late_s = chance.choice((0.0, 0.0, 0.02, 0.5))
        rival = replace(writers[0], host=draw_host(chance), start_s=writers[0].start_s + late_s, txn=None, mishap=None)
        writers.append(replace(rival, **_changes(chance)))
    has_past = plan.has_past or any(writer.mode == "delete" for writer in writers)
    return replace(plan, writers=tuple(writers), unique_in=unique_in, has_past=has_past)


def _changes(chance: random.Random) -> dict[str, Any]:
    mode = chance.choice(("upsert", "upsert", "upsert", "delete"))
    matched = chance.choice(("update", "update", "delete some", "keep")) if mode == "upsert" else "update"
    return {"mode": mode, "matched": matched, "drifts": chance.random() < 1 / 12}


def _by_key(chance: random.Random, writer: WriterPlan, unique_in: str, changes: dict[str, Any]) -> WriterPlan:
    writer = replace(writer, **changes, read_before_s=None, tasks=tuple(_task(chance, task) for task in writer.tasks))
    if unique_in == "table":  # a row may be in any partition
        writer = replace(writer, month=None, year=None)
    if chance.random() < 1 / 3:
        mishap = draw_mishap(chance, KINDS, probability=1.0, steps=200, landmarks=LANDMARKS + 3 * KEY_LANDMARKS)
        writer = replace(writer, mishap=mishap)
    return writer


def _task(chance: random.Random, task: TaskPlan) -> TaskPlan:
    """Return the task, an attempt of which may have a mishap at a step of a write by key."""
    first, *others = task.attempts
    if chance.random() < 1 / 6:
        first = replace(first, mishap=_mishap(chance), row_s=min(first.row_s, 1.0))
        others = others or [replace(first, mishap=None, start_s=chance.choice((0.0, 1.0)))]
    return replace(task, attempts=(first, *others))


def _mishap(chance: random.Random) -> Mishap | None:
    return draw_mishap(chance, {"killed", "stopped"}, probability=1.0, steps=100, landmarks=STEP_LANDMARKS)
