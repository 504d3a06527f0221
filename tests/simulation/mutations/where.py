"""Plans in which a mutation can show at all: the others need not be played to know that they do not show it."""

from collections.abc import Iterator

from tests.simulation.markers.marker_plan import MarkerPlan
from tests.simulation.plan import Mishap, Plan, WriterPlan
from tests.simulation.variations import RECUT_LANDMARKS

LEASE_S = 120.0

_EARLY = (None, ("put", "/beat/"))
"""Landmarks before the reservation."""


def without_staging(plan: Plan) -> bool:
    return not plan.has_staging


def with_staging(plan: Plan) -> bool:
    return plan.has_staging


def has_late_tasks(plan: Plan) -> bool:
    """A task may still be at work when its job is being ended."""
    is_given_up = any(writer.raises or writer.patience_s < 1e9 or writer.mishap for writer in plan.writers)
    return is_given_up or any(len(task.attempts) > 1 for writer in plan.writers for task in writer.tasks)


def has_direct(plan: Plan) -> bool:
    return any(writer.kind == "direct" for writer in plan.writers)


def has_service(plan: Plan) -> bool:
    return any(writer.kind == "batched" for writer in plan.writers)


def has_rival_overwrites(plan: Plan) -> bool:
    return sum(writer.mode == "overwrite" for writer in plan.writers) > 1


def has_overwrite(plan: Plan) -> bool:
    return any(writer.mode == "overwrite" for writer in plan.writers)


def has_rerun(plan: Plan) -> bool:
    return any(writer.txn is not None for writer in plan.writers)


def overwrites_what_was_read(plan: Plan) -> bool:
    return any(writer.mode == "overwrite" and writer.read_before_s is not None for writer in plan.writers)


def keeps_replaced(plan: Plan) -> bool:
    return plan.retain_hours is not None


def has_lease(plan: Plan) -> bool:
    return any(visitor.what == "read under a lease" for visitor in plan.visitors)


def has_lease_at_head(plan: Plan) -> bool:
    return any(visitor.what == "read under a lease" and visitor.back is None for visitor in plan.visitors)


def has_viewer(plan: Plan) -> bool:
    return bool(plan.viewers)


def has_checkpoints(plan: Plan) -> bool:
    return plan.checkpoint_entries < 64


def names_a_year(plan: Plan) -> bool:
    return plan.by_year and any(writer.mode == "overwrite" and writer.year is not None for writer in plan.writers)


def has_twins(plan: Plan) -> bool:
    """Two writers start at the same moment, and one of them may be paused there."""
    begun = [(writer.start_s, writer.clock_s) for writer in plan.writers]
    is_halted = any(mishap.what == "stopped" and mishap.after in _EARLY for mishap in _of_writers(plan))
    return len(set(begun)) < len(begun) and is_halted


def has_halted_service(plan: Plan) -> bool:
    """A writer that serves markers pauses for longer than its lease."""
    return any(writer.kind == "batched" and _is_halted(writer) for writer in plan.writers)


def has_operator(plan: Plan) -> bool:
    return any(visitor.what == "roll back one" for visitor in plan.visitors)


def has_fill(plan: Plan) -> bool:
    return any(writer.fill_bytes for writer in plan.writers)


def pauses_while_rewriting(plan: Plan) -> bool:
    """A writer may lose a small file, and pause before its new rows are in the table."""
    return any(
        writer.fill_bytes and _is_halted(writer) and writer.mishap and writer.mishap.after in RECUT_LANDMARKS
        for writer in plan.writers
    )


def has_death(plan: Plan) -> bool:
    """A process dies, or is cancelled during its work."""
    mishaps = [*_of_writers(plan), *(visitor.mishap for visitor in plan.visitors if visitor.mishap)]
    return any(mishap.what in ("killed", "cancelled") for mishap in mishaps)


def has_mishap_or_storm(plan: Plan) -> bool:
    return has_death(plan) or has_storm(plan)


def has_storm(plan: Plan) -> bool:
    return not plan.faults.is_storage_reliable


def has_repeats(plan: Plan) -> bool:
    return bool(plan.faults.twice)


def has_wrong_clock(plan: Plan) -> bool:
    return any(mishap.what == "clock jumps" for mishap in _of_writers(plan)) and len(plan.writers) > 1


def has_bodies(plan: Plan) -> bool:
    return plan.body_bytes < 1 << 20


def is_replaced(plan: Plan) -> bool:
    return plan.replacement is not None


def has_foreign_names(plan: Plan) -> bool:
    return plan.damage is not None and plan.damage.what == "foreign names"


def has_damage(plan: Plan) -> bool:
    return plan.damage is not None and plan.damage.what != "foreign names"


def loses_heartbeats(plan: Plan) -> bool:
    return any(writer.beats_lost_after_s for writer in plan.writers)


def halts_at_its_flag(plan: Plan) -> bool:
    return any(mishap.after == ("get", "/DIRECT") for mishap in _of_writers(plan))


def halts_at_a_clean(plan: Plan) -> bool:
    """A reader stops before it looks for open cleans."""
    mishaps = [visitor.mishap for visitor in plan.visitors if visitor.what == "read under a lease" and visitor.mishap]
    return has_lease(plan) and any(mishap.after == ("put", "/read/") for mishap in mishaps)


def has_many_servers(plan: MarkerPlan) -> bool:
    return len(plan.servers) > 1


def _of_writers(plan: Plan) -> Iterator[Mishap]:
    return (writer.mishap for writer in plan.writers if writer.mishap is not None)


def _is_halted(writer: WriterPlan) -> bool:
    return writer.mishap is not None and writer.mishap.what == "stopped" and writer.mishap.for_s > LEASE_S
