"""How often writers of a run leave checkpoints of its log, and what befalls them while they do."""

import random
from dataclasses import replace
from typing import Literal

from tests.simulation.plan import Mishap, Plan, WriterPlan

CHECKPOINT_LANDMARKS = (
    ("get", "/checkpoint/"),
    ("put", "/checkpoint/"),
    ("put", "/checkpoint/"),
    ("delete", "/checkpoint/"),
)
"""Of a writer that leaves one, or begins at one: parts, manifest and pointer are put; then what nobody needs goes."""


def with_checkpoints(chance: random.Random, plan: Plan) -> Plan:
    """In most runs writers leave checkpoints far more often than by default, and some meet with a mishap there."""
    if chance.random() < 1 / 3:
        return plan
    writers = tuple(_struck(chance, writer) for writer in plan.writers)
    return replace(plan, checkpoint_entries=chance.choice((1, 1, 2, 3)), writers=writers)


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
