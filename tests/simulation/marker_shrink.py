"""Smaller plans of a run without a table."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from tallymark.engine.settings import MarkerSettings
from tests.simulation.marker_plan import AskPlan, ClientPlan, MarkerPlan, ServerPlan, VisitorPlan
from tests.simulation.shrink import calmer, with_other, without


def smaller_marker_plans(plan: MarkerPlan) -> Iterator[MarkerPlan]:
    """Plans with one part less, the largest parts first."""
    for place in range(len(plan.clients)):
        yield replace(plan, clients=without(plan.clients, place))
    for place in range(len(plan.visitors)):
        yield replace(plan, visitors=without(plan.visitors, place))
    for place in range(1, len(plan.servers)):
        yield _without_server(plan, place)
    for weather in calmer(plan.weather):
        yield replace(plan, weather=weather)
    yield from _smaller_parts(plan)
    yield from _plainer(plan)


def _smaller_parts(plan: MarkerPlan) -> Iterator[MarkerPlan]:
    for place, server in enumerate(plan.servers):
        for smaller in _smaller_server(server):
            yield replace(plan, servers=with_other(plan.servers, place, smaller))
    for place, client in enumerate(plan.clients):
        for smaller_client in _smaller_client(client):
            yield replace(plan, clients=with_other(plan.clients, place, smaller_client))
    for place, visitor in enumerate(plan.visitors):
        for smaller_visitor in _smaller_visitor(visitor):
            yield replace(plan, visitors=with_other(plan.visitors, place, smaller_visitor))


def _without_server(plan: MarkerPlan, gone: int) -> MarkerPlan:
    """Who asked that server asks the one before it."""

    def moved(ask: AskPlan) -> AskPlan:
        return replace(ask, server=ask.server - (ask.server >= gone))

    clients = tuple(replace(client, asks=tuple(map(moved, client.asks))) for client in plan.clients)
    return replace(plan, servers=without(plan.servers, gone), clients=clients)


def _plainer(plan: MarkerPlan) -> Iterator[MarkerPlan]:
    """All servers with one setting that is as usual."""
    usual, present = MarkerSettings(), plan.servers[0].settings
    for names in (
        ("segment_count_max", "merge_freed_min"),
        ("merge_memory_bytes",),
        ("hedge_quantile", "hedge_ratio_max"),
        ("interval_s",),
        ("queue_limit",),
        ("worker_count",),
        ("load_concurrency",),
    ):
        changes: dict[str, Any] = {name: getattr(usual, name) for name in names}
        settings = replace(present, **changes)
        if settings != present:
            yield replace(plan, servers=tuple(replace(server, settings=settings) for server in plan.servers))


def _smaller_server(server: ServerPlan) -> Iterator[ServerPlan]:
    if server.mishap:
        yield replace(server, mishap=None)
    for place in range(len(server.acts)):
        yield replace(server, acts=without(server.acts, place))
    for asks in _fewer(server.asks):
        yield replace(server, asks=asks)
    for asks in _smaller_asks(server.asks):
        yield replace(server, asks=asks)
    if server.waits_for_last or server.start_s:
        yield replace(server, waits_for_last=False, start_s=0.0)


def _smaller_client(client: ClientPlan) -> Iterator[ClientPlan]:
    if client.mishap:
        yield replace(client, mishap=None)
    for asks in _fewer(client.asks):
        if asks:
            yield replace(client, asks=asks)
    for asks in _smaller_asks(client.asks):
        yield replace(client, asks=asks)


def _fewer(asks: tuple[AskPlan, ...]) -> Iterator[tuple[AskPlan, ...]]:
    """Half of them, then one less."""
    if len(asks) > 3:
        yield asks[: len(asks) // 2]
        yield asks[len(asks) // 2 :]
    for place in range(len(asks)):
        yield without(asks, place)


def _smaller_asks(asks: tuple[AskPlan, ...]) -> Iterator[tuple[AskPlan, ...]]:
    for place, ask in enumerate(asks):
        if len(ask.names) > 1:
            yield with_other(asks, place, replace(ask, names=ask.names[:1]))


def _smaller_visitor(visitor: VisitorPlan) -> Iterator[VisitorPlan]:
    if visitor.mishap:
        yield replace(visitor, mishap=None)
    for moment in range(len(visitor.at_s) if len(visitor.at_s) > 1 else 0):
        yield replace(visitor, at_s=without(visitor.at_s, moment))
