"""Which appends of a run fill small files, who goes for the same ones, and what befalls them meanwhile."""

import random
from dataclasses import replace

from tests.simulation.plan import STEPS_MAX, AttemptPlan, Plan, VisitorPlan, WriterPlan, draw_host, draw_mishap

RECUT_LANDMARKS = (
    ("staging", "/recut"),
    ("get", ".parquet"),
    ("get", ".parquet"),
    ("put", ".marker."),
    ("put", ".marker."),
    ("data", ".parquet"),
    ("put", "/fence/"),
    ("delete data", ""),
    ("put", "/log/"),
)
"""Of a driver that cuts a lost fill anew: it is the only one that marks and writes a data file itself."""

FILL_BYTES = (4000, 4000, 1600)
"""Maxima of files: room for some eight batches, or for two, so that rows are left over for new files."""


def with_fills(chance: random.Random, plan: Plan) -> Plan:
    """Let half of the appends fill small files, and in some runs another writer go for the same ones."""
    writers = [_filling(chance, writer) for writer in plan.writers]
    free = [
        place for place, writer in enumerate(writers) if writer.mode == "append" and writer.tasks and not writer.txn
    ]
    if not free or chance.random() < 1 / 3:
        return replace(plan, writers=tuple(writers))
    first = writers[free[0]] = _cutting(chance, writers[free[0]])
    late_s = chance.choice((0.0, 0.0, 0.02, 0.5))
    rival = replace(_cutting(chance, first), host=draw_host(chance), start_s=first.start_s + late_s)
    if chance.random() < 1 / 3:
        rival = replace(rival, mode="overwrite", dynamic=True, fill_bytes=0, mishap=None)
    visitors = plan.visitors
    if chance.random() < 3 / 4:
        at_s = tuple(first.start_s + later_s for later_s in (125.0, 140.0, 180.0))
        visitors += (VisitorPlan(host=draw_host(chance), what="roll back the dead", at_s=at_s),)
    return replace(plan, writers=(*writers, rival), visitors=visitors, has_past=True)


def _cutting(chance: random.Random, writer: WriterPlan) -> WriterPlan:
    """It fills what others fill, too; and something may befall it while it cuts anew what it has lost to them."""
    kinds = {chance.choice(("killed", "stopped", "cancelled"))}
    mishap = draw_mishap(chance, kinds, probability=0.7, steps=STEPS_MAX, landmarks=RECUT_LANDMARKS)
    if mishap is not None and mishap.what == "stopped":
        mishap = replace(mishap, for_s=max(mishap.for_s, 190.0), dies_after_steps=chance.choice((0, 2, 5, 10)))
        if chance.random() < 1 / 2:  # between the marker of what it cuts, and the put of that
            mishap = replace(mishap, after=("put", ".marker."), at_step=chance.choice((1, 2, 3)))
    writer = replace(
        writer,
        fill_bytes=writer.fill_bytes or FILL_BYTES[0],
        heeds_claims=False,
        is_unlucky=chance.random() < 1 / 4,
        raises=False,
        mishap=mishap,
    )
    return _with_slow_twin(chance, writer) if chance.random() < 1 / 4 else writer


def _with_slow_twin(chance: random.Random, writer: WriterPlan) -> WriterPlan:
    """An attempt of its last task is still at work when the writer has long sealed its tasks."""
    *others, last = writer.tasks
    slow = replace(last.attempts[0], row_s=chance.choice((0.5, 20.0, 60.0)), mishap=None)
    last = replace(last, months=last.months * 2, attempts=(*last.attempts, slow))
    return replace(writer, tasks=(*others, last))


def _filling(chance: random.Random, writer: WriterPlan) -> WriterPlan:
    if writer.mode != "append" or chance.random() < 1 / 2:
        return writer
    tasks = tuple(
        replace(task, attempts=tuple(_reading(chance, attempt) for attempt in task.attempts)) for task in writer.tasks
    )
    return replace(writer, fill_bytes=chance.choice(FILL_BYTES), heeds_claims=chance.random() < 1 / 2, tasks=tasks)


def _reading(chance: random.Random, attempt: AttemptPlan) -> AttemptPlan:
    """Something may befall it while it reads old rows."""
    landmarks = (("get", ".parquet"), ("data", ".parquet"))
    mishap = draw_mishap(chance, {"killed", "stopped"}, probability=0.15, steps=150, landmarks=landmarks)
    return attempt if mishap is None else replace(attempt, mishap=mishap)
