"""Make a failing plan smaller, as long as it fails in the same way."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, TypeVar

from tests.simulation.plan import Plan, TaskPlan, ViewerPlan, VisitorPlan, WriterPlan
from tests.simulation.weather import Weather

P = TypeVar("P")
T = TypeVar("T")

ATTEMPTS_MAX = 400
"""Runs that are tried; each takes some hundredths of a second."""


def shrink(plan: P, fails: Callable[[P], bool], smaller_plans: Callable[[P], Iterator[P]]) -> P:
    """A plan of which no part can be left out without the failure going away too.

    ``smaller_plans`` gives those with one part less.
    """
    attempts = 0
    is_smaller = True
    while is_smaller:
        is_smaller = False
        for smaller in smaller_plans(plan):
            attempts += 1
            if attempts > ATTEMPTS_MAX:
                return plan
            if fails(smaller):
                plan, is_smaller = smaller, True
                break
    return plan


def smaller_plans(plan: Plan) -> Iterator[Plan]:
    """Plans with one part less, the largest parts first."""
    crowds: dict[str, Callable[[Any], Iterator[Any]]] = {
        "writers": _smaller_writer,
        "visitors": _smaller_visitor,
        "viewers": _smaller_viewer,
    }
    for name in crowds:
        for place in range(len(getattr(plan, name))):
            yield _with(plan, name, without(getattr(plan, name), place))
    for name, plainest in (("has_past", False), ("retain_hours", None), ("by_year", False), ("checkpoint_entries", 64)):
        if getattr(plan, name) != plainest:
            yield _with(plan, name, plainest)
    for weather in calmer(plan.weather):
        yield replace(plan, weather=weather)
    for name, smaller_ones in reversed(crowds.items()):
        for place, one in enumerate(getattr(plan, name)):
            for smaller in smaller_ones(one):
                yield _with(plan, name, with_other(getattr(plan, name), place, smaller))


def _with(plan: Plan, name: str, value: object) -> Plan:
    changes: dict[str, Any] = {name: value}
    return replace(plan, **changes)


def calmer(weather: Weather) -> Iterator[Weather]:
    calm = Weather(put_s=weather.put_s)
    if weather == calm:
        return
    yield calm
    for name in ("tail", "lost_request", "lost_answer", "late", "throttled", "twice", "reset", "unreachable", "spread"):
        if getattr(weather, name):
            changes: dict[str, Any] = {name: 0.0}
            yield replace(weather, **changes)
    if weather.outage:
        yield replace(weather, outage=None, outage_s=0.0)
    if weather.page_size != calm.page_size:
        yield replace(weather, page_size=calm.page_size)
    if weather.delete_size != calm.delete_size:
        yield replace(weather, delete_size=calm.delete_size)


def _smaller_visitor(visitor: VisitorPlan) -> Iterator[VisitorPlan]:
    if visitor.mishap:
        yield replace(visitor, mishap=None)
    if visitor.back is not None:
        yield replace(visitor, back=None)
    if visitor.hold_s:
        yield replace(visitor, hold_s=0.0)
    for moment in range(len(visitor.at_s) if len(visitor.at_s) > 1 else 0):
        yield replace(visitor, at_s=without(visitor.at_s, moment))


def _smaller_viewer(viewer: ViewerPlan) -> Iterator[ViewerPlan]:
    if viewer.mishap:
        yield replace(viewer, mishap=None)
    for place in range(len(viewer.looks) if len(viewer.looks) > 1 else 0):
        yield replace(viewer, looks=without(viewer.looks, place))
    for place, look in enumerate(viewer.looks):
        if look.pause_s or look.is_leased:
            yield replace(viewer, looks=with_other(viewer.looks, place, replace(look, pause_s=0.0, is_leased=False)))


_PLAINEST: dict[str, Any] = {
    "mishap": None,
    "clock_s": 0.0,
    "thinks_s": None,
    "month": None,
    "year": None,
    "fill_bytes": 0,
    "is_unlucky": False,
    "heeds_claims": True,
    "queue_limit": 100_000,
}
"""Of a writer."""


def _smaller_writer(writer: WriterPlan) -> Iterator[WriterPlan]:
    if writer.mishap and writer.mishap.dies_after_steps:
        yield replace(writer, mishap=replace(writer.mishap, dies_after_steps=0))
    for name, plainest in _PLAINEST.items():
        if getattr(writer, name) != plainest:
            changes: dict[str, Any] = {name: plainest}
            yield replace(writer, **changes)
    for place in range(len(writer.tasks)):
        yield replace(writer, tasks=without(writer.tasks, place))
    for place, task in enumerate(writer.tasks):
        for smaller in _smaller_task(task):
            yield replace(writer, tasks=with_other(writer.tasks, place, smaller))


def _smaller_task(task: TaskPlan) -> Iterator[TaskPlan]:
    for place in range(len(task.months) if len(task.months) > 1 else 0):
        yield replace(task, months=without(task.months, place))
    for place in range(len(task.attempts) if len(task.attempts) > 1 else 0):
        yield replace(task, attempts=without(task.attempts, place))
    for place, attempt in enumerate(task.attempts):
        if attempt.mishap:
            yield replace(task, attempts=with_other(task.attempts, place, replace(attempt, mishap=None)))
        if attempt.raises:
            yield replace(task, attempts=with_other(task.attempts, place, replace(attempt, raises=False)))
        if attempt.dies_after:
            yield replace(task, attempts=with_other(task.attempts, place, replace(attempt, dies_after=False)))
        if attempt.astray is not None:
            yield replace(task, attempts=with_other(task.attempts, place, replace(attempt, astray=None)))


def without(items: tuple[T, ...], place: int) -> tuple[T, ...]:
    return items[:place] + items[place + 1 :]


def with_other(items: tuple[T, ...], place: int, item: T) -> tuple[T, ...]:
    return (*items[:place], item, *items[place + 1 :])
