"""Make a failing plan smaller, as long as it fails in the same way."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, TypeVar

from tests.simulation.plan import Plan, TaskPlan, VisitorPlan, WriterPlan
from tests.simulation.weather import Weather

T = TypeVar("T")

ATTEMPTS_MAX = 400
"""Runs that are tried; each takes some hundredths of a second."""


def shrink(plan: Plan, fails: Callable[[Plan], bool]) -> Plan:
    """A plan of which no part can be left out without the failure going away too."""
    attempts = 0
    is_smaller = True
    while is_smaller:
        is_smaller = False
        for smaller in _smaller(plan):
            attempts += 1
            if attempts > ATTEMPTS_MAX:
                return plan
            if fails(smaller):
                plan, is_smaller = smaller, True
                break
    return plan


def _smaller(plan: Plan) -> Iterator[Plan]:
    """Plans with one part less, the largest parts first."""
    for place in range(len(plan.writers)):
        yield replace(plan, writers=_without(plan.writers, place))
    for place in range(len(plan.visitors)):
        yield replace(plan, visitors=_without(plan.visitors, place))
    for weather in _calmer(plan.weather):
        yield replace(plan, weather=weather)
    for place, visitor in enumerate(plan.visitors):
        for shorter in _smaller_visitor(visitor):
            yield replace(plan, visitors=_with(plan.visitors, place, shorter))
    for place, writer in enumerate(plan.writers):
        for smaller in _smaller_writer(writer):
            yield replace(plan, writers=_with(plan.writers, place, smaller))


def _calmer(weather: Weather) -> Iterator[Weather]:
    calm = Weather(put_s=weather.put_s)
    if weather == calm:
        return
    yield calm
    for name in ("tail", "lost_request", "lost_answer", "late", "throttled", "reset", "unreachable", "spread"):
        if getattr(weather, name):
            changes: dict[str, Any] = {name: 0.0}
            yield replace(weather, **changes)
    if weather.page_size != calm.page_size:
        yield replace(weather, page_size=calm.page_size)


def _smaller_visitor(visitor: VisitorPlan) -> Iterator[VisitorPlan]:
    if visitor.mishap:
        yield replace(visitor, mishap=None)
    for moment in range(len(visitor.at_s) if len(visitor.at_s) > 1 else 0):
        yield replace(visitor, at_s=_without(visitor.at_s, moment))


def _smaller_writer(writer: WriterPlan) -> Iterator[WriterPlan]:
    if writer.mishap:
        yield replace(writer, mishap=None)
    if writer.clock_s:
        yield replace(writer, clock_s=0.0)
    if writer.queue_limit == 1:
        yield replace(writer, queue_limit=100_000)
    for place in range(len(writer.tasks)):
        yield replace(writer, tasks=_without(writer.tasks, place))
    for place, task in enumerate(writer.tasks):
        for smaller in _smaller_task(task):
            yield replace(writer, tasks=_with(writer.tasks, place, smaller))


def _smaller_task(task: TaskPlan) -> Iterator[TaskPlan]:
    for place in range(len(task.months) if len(task.months) > 1 else 0):
        yield replace(task, months=_without(task.months, place))
    for place in range(len(task.attempts) if len(task.attempts) > 1 else 0):
        yield replace(task, attempts=_without(task.attempts, place))
    for place, attempt in enumerate(task.attempts):
        if attempt.mishap:
            yield replace(task, attempts=_with(task.attempts, place, replace(attempt, mishap=None)))
        if attempt.raises:
            yield replace(task, attempts=_with(task.attempts, place, replace(attempt, raises=False)))
        if attempt.dies_after:
            yield replace(task, attempts=_with(task.attempts, place, replace(attempt, dies_after=False)))
        if attempt.astray is not None:
            yield replace(task, attempts=_with(task.attempts, place, replace(attempt, astray=None)))


def _without(items: tuple[T, ...], place: int) -> tuple[T, ...]:
    return items[:place] + items[place + 1 :]


def _with(items: tuple[T, ...], place: int, item: T) -> tuple[T, ...]:
    return (*items[:place], item, *items[place + 1 :])
