"""Variation of a drawn plan: jobs whose tasks use services outside of their drivers."""

import random
from dataclasses import replace

from tests.simulation.fault_profile import FIRST_SEGMENT
from tests.simulation.plan import Mishap, Plan, ServiceLife, ServicePlan, WriterPlan, draw_host

SERVICE_LANDMARKS = (
    ("put", FIRST_SEGMENT),
    ("put", FIRST_SEGMENT),
    ("put", "/SERVER"),
    ("get", "/SERVER"),
    ("get", "/seal/"),
    ("list", "/.temp/"),
    ("put", "/log/"),
    ("put", "/log/"),
    ("get", "/log/"),
)
"""Requests that mark the progress of a service on an instant."""


def with_services(chance: random.Random, plan: Plan) -> Plan:
    """In a fourth of the runs let tasks of batched jobs use one or two services, but for those whose overwrites go by
    what was read before: there are few of them.
    """
    if chance.random() >= 1 / 4 or any(writer.read_before_s is not None for writer in plan.writers):
        return plan
    services = tuple(_service(chance) for _ in range(chance.choice((1, 2, 2))))
    return replace(plan, services=services, writers=tuple(_client(chance, writer) for writer in plan.writers))


def _client(chance: random.Random, writer: WriterPlan) -> WriterPlan:
    return replace(writer, is_shared=writer.kind == "batched" and chance.random() < 3 / 4)


def _service(chance: random.Random) -> ServicePlan:
    lives = tuple(
        ServiceLife(mishap=_mishap(chance), pause_s=chance.choice((0.0, 0.1, 3.0, 60.0)))
        for _ in range(chance.choice((0, 1, 2, 4)))
    )
    return ServicePlan(host=draw_host(chance), lives=lives)


def _mishap(chance: random.Random) -> Mishap:
    return Mishap(
        what=chance.choice(("killed", "killed", "stopped")),
        at_step=chance.choice((0, 0, 1, 3, 10, 30)),
        after=chance.choice(SERVICE_LANDMARKS),
        for_s=chance.choice((1.0, 30.0, 150.0, 400.0)),
        dies_after_steps=chance.choice((1, 20, 100)),
    )
