"""Who reads under a lease in a run, who cleans meanwhile, and what befalls both."""

import random
from dataclasses import replace
from typing import Literal

from tests.simulation.plan import AttemptPlan, Mishap, Plan, TaskPlan, VisitorPlan, WriterPlan, draw_host

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
"""Of a reader: before its lease is there, while that is put, when it looks for cleans, while it reads, at its end."""

CLEAN_LANDMARKS = (("list", "/read"), ("list", "/read"), ("put", "/open/"), ("put", "/log/"), ("delete data", ""))
"""Of a clean, around the look at the leases and its entry."""

STEPS_AFTER_MAX = 8


def with_leases(chance: random.Random, plan: Plan) -> Plan:
    """On most tables that keep what is replaced some read under leases, and some clean before the hours are over."""
    if plan.retain_hours is None or chance.random() < 1 / 5:
        return plan
    moments = _moments(chance, plan)
    readers = tuple(_reader(chance, moments) for _ in range(chance.choice((1, 1, 2))))
    cleaners = tuple(_cleaner(chance, moments) for _ in range(chance.choice((0, 1, 2, 2))))
    plan = replace(plan, visitors=plan.visitors + readers + cleaners, has_past=True)
    race = chance.choice(
        (None, _clean_that_stands_still, _clean_that_stands_still, _reader_that_stands_still, _reader_amid_cleans)
    )
    if race is None:
        return plan
    if race is _reader_amid_cleans:
        plan = replace(plan, writers=plan.writers + _overwriters(chance, max(moments)))
    return replace(plan, visitors=plan.visitors + race(chance, moments), retain_hours=1.0)


def _moments(chance: random.Random, plan: Plan) -> tuple[float, ...]:
    """Around which something is replaced."""
    starts = [writer.start_s for writer in plan.writers if writer.mode == "overwrite"]
    return tuple(starts or [writer.start_s for writer in plan.writers])


def _reader(chance: random.Random, moments: tuple[float, ...]) -> VisitorPlan:
    return VisitorPlan(
        host=draw_host(chance),
        what="read under a lease",
        at_s=_around(chance, moments),
        back=chance.choice((None, None, 0, 1, 1, 2)),
        hold_s=chance.choice((0.0, 0.5, 5.0, 50.0, 300.0)),
        mishap=_mishap(chance, READ_LANDMARKS) if chance.random() < 1 / 2 else None,
    )


def _cleaner(chance: random.Random, moments: tuple[float, ...]) -> VisitorPlan:
    return VisitorPlan(
        host=draw_host(chance),
        what="clean at once",
        at_s=_around(chance, moments),
        mishap=_mishap(chance, CLEAN_LANDMARKS) if chance.random() < 1 / 2 else None,
    )


def _reader_amid_cleans(chance: random.Random, moments: tuple[float, ...]) -> tuple[VisitorPlan, ...]:
    """Of what has been replaced by then, cleans may let go a part."""
    at_s = max(moments) + chance.choice((10.0, 20.0, 40.0))
    reader = VisitorPlan(
        host=draw_host(chance),
        what="read under a lease",
        at_s=(at_s,),
        back=chance.choice((1, 1, 2)),
        hold_s=100.0,
    )
    cleaner = VisitorPlan(
        host=draw_host(chance), what="clean at once", at_s=tuple(at_s + later_s for later_s in (5.0, 20.0, 60.0))
    )
    return reader, cleaner


def _overwriters(chance: random.Random, moment: float) -> tuple[WriterPlan, ...]:
    """Two who replace the same month, one after the other, undisturbed."""
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


def _clean_that_stands_still(chance: random.Random, moments: tuple[float, ...]) -> tuple[VisitorPlan, ...]:
    """Once it has asked for leases; and somebody begins to read an older position meanwhile."""
    at_s = chance.choice(moments) + chance.choice((2.0, 10.0, 40.0))
    for_s = chance.choice((30.0, 70.0))
    halted = Mishap(what="stopped", at_step=chance.randint(2, 5), after=("put", "/open/"), for_s=for_s)
    cleaner = VisitorPlan(host=draw_host(chance), what="clean at once", at_s=(at_s,), mishap=halted)
    late_s = chance.choice((0.5, 1.0, 5.0))
    reader = VisitorPlan(
        host=draw_host(chance),
        what="read under a lease",
        at_s=(at_s + late_s,),
        back=chance.choice((1, 1, 2)),
        hold_s=100.0,
    )
    return cleaner, reader


def _reader_that_stands_still(chance: random.Random, moments: tuple[float, ...]) -> tuple[VisitorPlan, ...]:
    """Before its lease is there, while what it has read of the log is replaced, and cleaned."""
    moment = chance.choice(moments)
    halted = Mishap(what="stopped", at_step=chance.randint(2, 9), after=("list", "/log"), for_s=100.0)
    reader = VisitorPlan(
        host=draw_host(chance),
        what="read under a lease",
        at_s=(moment + chance.choice((0.0, 0.0, 0.1, 1.0)),),
        hold_s=100.0,
        mishap=halted,
    )
    cleaner = VisitorPlan(
        host=draw_host(chance), what="clean at once", at_s=tuple(moment + later_s for later_s in (10.0, 40.0, 90.0))
    )
    return reader, cleaner


def _around(chance: random.Random, moments: tuple[float, ...]) -> tuple[float, ...]:
    spread = chance.choice((0.1, 1.0, 10.0, 100.0))
    return tuple(sorted(chance.choice(moments) + spread * chance.random() for _ in range(3)))


def _mishap(chance: random.Random, landmarks: tuple[tuple[str, str], ...]) -> Mishap:
    what: Literal["stopped", "killed", "cancelled"] = chance.choice(("stopped",) * 3 + ("killed", "cancelled"))
    return Mishap(
        what=what,
        at_step=chance.choice((0, 1, 2, STEPS_AFTER_MAX)),
        after=chance.choice(landmarks),
        for_s=chance.choice((1.0, 10.0, 50.0, 100.0, 190.0)) if what == "stopped" else 0.0,
    )
