"""Variations of a drawn plan: fills, readers under leases, views and checkpoints."""

import random
from dataclasses import replace
from typing import Literal

from tests.simulation.plan import (
    STEPS_MAX,
    AttemptPlan,
    Mishap,
    Plan,
    TaskPlan,
    ViewerPlan,
    ViewQueryPlan,
    VisitorPlan,
    WriterPlan,
    draw_host,
    draw_mishap,
)

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
"""Of a driver that rewrites a lost fill: it is the only one that marks and writes a data file itself."""

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
    first = writers[free[0]] = _rewriting(chance, writers[free[0]])
    late_s = chance.choice((0.0, 0.0, 0.02, 0.5))
    rival = replace(_rewriting(chance, first), host=draw_host(chance), start_s=first.start_s + late_s)
    if chance.random() < 1 / 3:
        rival = replace(rival, mode="overwrite", dynamic=True, fill_bytes=0, mishap=None)
    visitors = plan.visitors
    if chance.random() < 3 / 4:
        at_s = tuple(first.start_s + later_s for later_s in (125.0, 140.0, 180.0))
        visitors += (VisitorPlan(host=draw_host(chance), what="roll back the dead", at_s=at_s),)
    return replace(plan, writers=(*writers, rival), visitors=visitors, has_past=True)


def _rewriting(chance: random.Random, writer: WriterPlan) -> WriterPlan:
    """Let it fill what others fill, too, and have a mishap while it rewrites a lost fill."""
    kinds = {chance.choice(("killed", "stopped", "cancelled"))}
    mishap = draw_mishap(chance, kinds, probability=0.7, steps=STEPS_MAX, landmarks=RECUT_LANDMARKS)
    if mishap is not None and mishap.what == "stopped":
        mishap = replace(mishap, for_s=max(mishap.for_s, 190.0), dies_after_steps=chance.choice((0, 2, 5, 10)))
        if chance.random() < 1 / 2:  # between the marker of what it cuts, and the put of that
            mishap = replace(mishap, after=("put", ".marker."), at_step=chance.choice((1, 2, 3)))
    writer = replace(
        writer,
        fill_bytes=writer.fill_bytes or FILL_BYTES[0],
        respects_claims=False,
        loses_rewrite_answer=chance.random() < 1 / 4,
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
    return replace(writer, fill_bytes=chance.choice(FILL_BYTES), respects_claims=chance.random() < 1 / 2, tasks=tasks)


def _reading(chance: random.Random, attempt: AttemptPlan) -> AttemptPlan:
    """Let it have a mishap while it reads old rows."""
    landmarks = (("get", ".parquet"), ("data", ".parquet"))
    mishap = draw_mishap(chance, {"killed", "stopped"}, probability=0.15, steps=150, landmarks=landmarks)
    return attempt if mishap is None else replace(attempt, mishap=mishap)


READ_LANDMARKS = (
    ("get", "/log/"),
    ("list", "/log"),
    ("list", "/log"),
    ("put", "/read/"),
    ("put", "/read/"),
    ("list", "/open"),
    ("get", ".parquet"),
    ("get", ".parquet"),
    ("get", ".parquet"),
    ("delete", "/read/"),
)
"""Of a reader: before its lease is there, while that is put, when it checks for cleans, while it reads, at its end."""

CLEAN_LANDMARKS = (("list", "/read"), ("list", "/read"), ("put", "/open/"), ("put", "/log/"), ("delete data", ""))
"""Of a clean, around the list of the leases and its entry."""

STEPS_AFTER_MAX = 8


def with_leases(chance: random.Random, plan: Plan) -> Plan:
    """On most tables that keep what is replaced some read under leases, and some clean before the hours are over."""
    if plan.retain_hours is None or chance.random() < 1 / 5:
        return plan
    moments = _moments(chance, plan)
    readers = tuple(_leased_reader(chance, moments) for _ in range(chance.choice((1, 1, 2))))
    cleaners = tuple(_cleaner(chance, moments) for _ in range(chance.choice((0, 1, 2, 2))))
    plan = replace(plan, visitors=plan.visitors + readers + cleaners, has_past=True)
    race = chance.choice((None, _paused_clean, _paused_clean, _paused_reader, _reader_during_cleans))
    if race is None:
        return plan
    if race is _reader_during_cleans:
        plan = replace(plan, writers=plan.writers + _overwriters(chance, max(moments)))
    return replace(plan, visitors=plan.visitors + race(chance, moments), retain_hours=1.0)


def _moments(chance: random.Random, plan: Plan) -> tuple[float, ...]:
    """Around which something is replaced."""
    starts = [writer.start_s for writer in plan.writers if writer.mode == "overwrite"]
    return tuple(starts or [writer.start_s for writer in plan.writers])


def _leased_reader(chance: random.Random, moments: tuple[float, ...]) -> VisitorPlan:
    return VisitorPlan(
        host=draw_host(chance),
        what="read under a lease",
        at_s=_around(chance, moments),
        back=chance.choice((None, None, 0, 1, 1, 2)),
        hold_s=chance.choice((0.0, 0.5, 5.0, 50.0, 300.0)),
        mishap=_lease_mishap(chance, READ_LANDMARKS) if chance.random() < 1 / 2 else None,
    )


def _cleaner(chance: random.Random, moments: tuple[float, ...]) -> VisitorPlan:
    return VisitorPlan(
        host=draw_host(chance),
        what="clean at once",
        at_s=_around(chance, moments),
        mishap=_lease_mishap(chance, CLEAN_LANDMARKS) if chance.random() < 1 / 2 else None,
    )


def _reader_during_cleans(chance: random.Random, moments: tuple[float, ...]) -> tuple[VisitorPlan, ...]:
    """Cleans may expire a part of what has been replaced by then."""
    at_s = max(moments) + chance.choice((10.0, 20.0, 40.0))
    reader = _long_reader(draw_host(chance), at_s, back=chance.choice((1, 1, 2)))
    return reader, _cleaner_after(draw_host(chance), at_s, 5.0, 20.0, 60.0)


def _long_reader(host: str, at_s: float, *, back: int | None = None, mishap: Mishap | None = None) -> VisitorPlan:
    return VisitorPlan(host=host, what="read under a lease", at_s=(at_s,), back=back, hold_s=100.0, mishap=mishap)


def _cleaner_after(host: str, at_s: float, *later_s: float) -> VisitorPlan:
    return VisitorPlan(host=host, what="clean at once", at_s=tuple(at_s + each for each in later_s))


def _overwriters(chance: random.Random, moment: float) -> tuple[WriterPlan, ...]:
    """Return two writers that replace the same month, one after the other, undisturbed."""
    return tuple(
        WriterPlan(
            host=(host := draw_host(chance)),
            start_s=moment + later_s,
            clock_s=0.0,
            mode="overwrite",
            dynamic=True,
            kind="direct",
            tasks=(TaskPlan(months=(1,), attempts=(AttemptPlan(host=host, start_s=0.0, row_s=0.0),)),),
        )
        for later_s in (1.0, 5.0)
    )


def _paused_clean(chance: random.Random, moments: tuple[float, ...]) -> tuple[VisitorPlan, ...]:
    """Pause a clean after it has listed leases, while a reader starts at an older position."""
    at_s = chance.choice(moments) + chance.choice((2.0, 10.0, 40.0))
    for_s = chance.choice((30.0, 70.0))
    halted = Mishap(what="stopped", at_step=chance.randint(2, 5), after=("put", "/open/"), for_s=for_s)
    cleaner = VisitorPlan(host=draw_host(chance), what="clean at once", at_s=(at_s,), mishap=halted)
    late_s = chance.choice((0.5, 1.0, 5.0))
    return cleaner, _long_reader(draw_host(chance), at_s + late_s, back=chance.choice((1, 1, 2)))


def _paused_reader(chance: random.Random, moments: tuple[float, ...]) -> tuple[VisitorPlan, ...]:
    """Before its lease is there, while what it has read of the log is replaced, and cleaned."""
    moment = chance.choice(moments)
    halted = Mishap(what="stopped", at_step=chance.randint(2, 9), after=("list", "/log"), for_s=100.0)
    reader = _long_reader(draw_host(chance), moment + chance.choice((0.0, 0.0, 0.1, 1.0)), mishap=halted)
    return reader, _cleaner_after(draw_host(chance), moment, 10.0, 40.0, 90.0)


def _around(chance: random.Random, moments: tuple[float, ...]) -> tuple[float, ...]:
    spread = chance.choice((0.1, 1.0, 10.0, 100.0))
    return tuple(sorted(chance.choice(moments) + spread * chance.random() for _ in range(3)))


def _lease_mishap(chance: random.Random, landmarks: tuple[tuple[str, str], ...]) -> Mishap:
    what: Literal["stopped", "killed", "cancelled"] = chance.choice(("stopped",) * 3 + ("killed", "cancelled"))
    return Mishap(
        what=what,
        at_step=chance.choice((0, 1, 2, STEPS_AFTER_MAX)),
        after=chance.choice(landmarks),
        for_s=chance.choice((1.0, 10.0, 50.0, 100.0, 190.0)) if what == "stopped" else 0.0,
    )


VIEW_LANDMARKS = (("get", "/log/"), ("get", "/log/"), ("put", "/read/"), ("list", "/open"))
"""Of a process that follows a log: while it reads, and around its lease."""


def with_viewers(chance: random.Random, plan: Plan) -> Plan:
    """On half of the tables that have a past, and on all that keep replaced files, add a process that keeps a view."""
    is_spared = chance.random() < 1 / 2 and plan.retain_hours is None
    if not plan.has_past or is_spared:
        return plan
    moments = tuple(writer.start_s for writer in plan.writers)
    return replace(plan, viewers=tuple(_viewer(chance, plan, moments) for _ in range(chance.choice((1, 1, 2)))))


def _viewer(chance: random.Random, plan: Plan, moments: tuple[float, ...]) -> ViewerPlan:
    start_s = max(0.0, chance.choice(moments) - chance.choice((0.0, 0.0, 1.0)))
    spread_s = chance.choice((0.5, 5.0, 50.0, 200.0, 400.0))
    queries = [_draw_query(chance, plan, spread_s) for _ in range(chance.choice((3, 5, 8)))]
    return ViewerPlan(
        host=draw_host(chance),
        start_s=start_s,
        queries=tuple(sorted(queries, key=lambda query: query.at_s)),
        mishap=_viewer_mishap(chance) if chance.random() < 1 / 3 else None,
    )


def _draw_query(chance: random.Random, plan: Plan, spread_s: float) -> ViewQueryPlan:
    return ViewQueryPlan(
        at_s=spread_s * chance.random(),
        syncs=chance.random() < 1 / 2,
        of=chance.choice(("head", "head", "start", "back") if plan.retain_hours is None else ("head", "start", "back")),
        pause_s=chance.choice((0.0, 0.0, 0.1, 3.0, 30.0)),
        is_leased=plan.retain_hours is not None and chance.random() < 1 / 3,
    )


def _viewer_mishap(chance: random.Random) -> Mishap:
    if chance.random() < 1 / 4:
        return Mishap(what="killed", at_step=chance.choice((1, 20, 60)))
    for_s = chance.choice((1.0, 30.0, 100.0, 190.0))
    return Mishap(what="stopped", at_step=chance.choice((0, 1, 4)), after=chance.choice(VIEW_LANDMARKS), for_s=for_s)


CHECKPOINT_LANDMARKS = (
    ("get", "/checkpoint/"),
    ("put", "/checkpoint/"),
    ("put", "/checkpoint/"),
    ("delete", "/checkpoint/"),
)
"""Of a writer that puts one, or starts at one: parts, manifest and pointer are put; then old ones are deleted."""


def with_checkpoints(chance: random.Random, plan: Plan) -> Plan:
    """In most runs writers leave checkpoints far more often than by default, and some meet with a mishap there."""
    if chance.random() < 1 / 3:
        return plan
    writers = tuple(_struck(chance, writer) for writer in plan.writers)
    entries = chance.choice((1, 1, 2, 3))
    return replace(plan, checkpoint_entries=entries, writers=writers, kept_entries=chance.choice((1, 1, 2, 64)))


def _struck(chance: random.Random, writer: WriterPlan) -> WriterPlan:
    if writer.mishap is not None or chance.random() < 3 / 4:
        return writer
    what: Literal["killed", "stopped"] = chance.choice(("killed", "stopped"))
    mishap = Mishap(
        what=what,
        at_step=chance.choice((0, 0, 1, 5)),
        after=chance.choice(CHECKPOINT_LANDMARKS),
        for_s=chance.choice((1.0, 30.0, 190.0)) if what == "stopped" else 0.0,
    )
    return replace(writer, mishap=mishap)
