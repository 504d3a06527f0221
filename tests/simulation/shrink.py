"""Smaller plans that fail as well, so that a reader can see why they fail."""

from collections.abc import Callable, Iterator
from dataclasses import MISSING, fields, is_dataclass, replace
from typing import Any, TypeVar

from tallymark.engine.settings import MarkerSettings
from tests.simulation.fault_profile import FaultProfile
from tests.simulation.markers.marker_plan import ClientPlan, MarkerPlan, MarkerVisitorPlan, RequestPlan, ServerPlan
from tests.simulation.plan import (
    Mishap,
    Plan,
    ProducerPlan,
    ServicePlan,
    StreamPlan,
    TaskPlan,
    ViewerPlan,
    VisitorPlan,
    WriterPlan,
)

P = TypeVar("P")
T = TypeVar("T")

ATTEMPTS_MAX = 400
"""Runs that are tried; each takes a few hundredths of a second."""

PLAINEST: dict[type[Any], dict[str, Any]] = {
    WriterPlan: {"clock_s": 0.0},
    ServerPlan: {"waits_for_last": False, "start_s": 0.0},
}
"""Values that make a part of a plan simpler, of fields without a default; those of the others are their defaults."""

KEPT = (FaultProfile, "put_s"), (Mishap, "after"), (RequestPlan, "server")
"""Fields whose default is not simpler."""

PARTS: dict[type[Any], dict[str, int]] = {
    Plan: {"writers": 0, "visitors": 0, "viewers": 0, "services": 1, "streams": 0},
    ServicePlan: {"lives": 0},
    StreamPlan: {"producers": 1, "mishaps": 0, "entry_fates": 0},
    ProducerPlan: {"months": 1},
    WriterPlan: {"tasks": 0, "entry_fates": 0},
    TaskPlan: {"months": 1, "attempts": 1},
    VisitorPlan: {"at_s": 1},
    ViewerPlan: {"queries": 1},
    MarkerPlan: {"clients": 0, "visitors": 0, "servers": 3},
    ServerPlan: {"acts": 0, "requests": 0},
    ClientPlan: {"requests": 1},
    RequestPlan: {"names": 1},
    MarkerVisitorPlan: {"at_s": 1},
}
"""Fields with several parts, and how many of them must remain. (``_without_server`` leaves out servers.)"""

SETTINGS = (
    ("segment_count_max", "merge_freed_min"),
    ("merge_memory_bytes",),
    ("hedge_quantile", "hedge_ratio_max"),
    ("interval_s",),
    ("queue_limit",),
    ("worker_count",),
    ("load_concurrency",),
)
"""Settings of marker servers that return to their defaults together."""


def shrink(plan: P, fails: Callable[[P], bool]) -> P:
    """Return a plan of which no part can be left out without the failure going away too."""
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


def smaller_plans(plan: P) -> Iterator[P]:
    """Yield plans with one part less, the largest parts first."""
    if isinstance(plan, MarkerPlan):
        yield from (_without_server(plan, place) for place in range(1, len(plan.servers)))
    yield from _smaller(plan)
    if isinstance(plan, MarkerPlan):
        yield from _with_default_settings(plan)


def _smaller(whole: Any) -> Iterator[Any]:
    """Yield copies with fewer parts, with one plainest value, and with one smaller part."""
    parts = PARTS.get(type(whole), {})
    for name, count_min in parts.items():
        yield from (_with(whole, name, fewer) for fewer in _fewer(getattr(whole, name), count_min))
    for name, plainest in _plainest(type(whole)).items():
        if getattr(whole, name) != plainest:
            yield _with(whole, name, plainest)
    for field in fields(whole):
        value = getattr(whole, field.name)
        if isinstance(value, FaultProfile) and value != (reliable := FaultProfile(put_s=value.put_s)):
            yield _with(whole, field.name, reliable)
        if is_dataclass(value) and not isinstance(value, MarkerSettings):
            yield from (_with(whole, field.name, smaller) for smaller in _smaller(value))
    for name in parts:
        yield from _with_smaller_part(whole, name)


def _plainest(part: type[Any]) -> dict[str, Any]:
    defaults = {
        each.name: each.default
        for each in fields(part)
        if (part, each.name) not in KEPT and each.name not in PARTS.get(part, {})
    }
    return {name: value for name, value in defaults.items() if value is not MISSING} | PLAINEST.get(part, {})


def _with_smaller_part(whole: Any, name: str) -> Iterator[Any]:
    items = getattr(whole, name)
    for place, part in enumerate(items):
        if is_dataclass(part):
            for smaller in _smaller(part):
                yield _with(whole, name, (*items[:place], smaller, *items[place + 1 :]))


def _fewer(items: tuple[T, ...], count_min: int) -> Iterator[tuple[T, ...]]:
    """Yield each half, then all but one."""
    if len(items) > max(3, count_min):
        yield items[: len(items) // 2]
        yield items[len(items) // 2 :]
    for place in range(len(items) if len(items) > count_min else 0):
        yield _without(items, place)


def _without(items: tuple[T, ...], place: int) -> tuple[T, ...]:
    return items[:place] + items[place + 1 :]


def _with(whole: Any, name: str, value: object) -> Any:
    return replace(whole, **{name: value})


def _without_server(plan: MarkerPlan, gone: int) -> Any:
    """Clients of that server use the one before it."""

    def moved(request: RequestPlan) -> RequestPlan:
        return replace(request, server=request.server - (request.server >= gone))

    clients = tuple(replace(client, requests=tuple(map(moved, client.requests))) for client in plan.clients)
    return replace(plan, servers=_without(plan.servers, gone), clients=clients)


def _with_default_settings(plan: MarkerPlan) -> Iterator[Any]:
    """Yield plans in which all servers have one setting less that differs from its default."""
    defaults, present = MarkerSettings(), plan.servers[0].settings
    for names in SETTINGS:
        settings = replace(present, **{name: getattr(defaults, name) for name in names})
        if settings != present:
            yield replace(plan, servers=tuple(replace(server, settings=settings) for server in plan.servers))
