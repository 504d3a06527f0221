"""Plans in which a mutation can show at all: the others need not be played to know that they do not show it."""

from collections.abc import Callable, Iterator

from tests.simulation.markers.marker_plan import MarkerPlan
from tests.simulation.plan import Mishap, Plan, VisitorPlan, WriterPlan
from tests.simulation.variations import RECUT_LANDMARKS

LEASE_S = 120.0

_EARLY = (None, ("put", "/beat/"))
"""Landmarks before the reservation."""

Condition = Callable[[Plan], bool]


def _has_writer(fits: Callable[[WriterPlan], object], *, count: int = 1) -> Condition:
    """Some writers are so."""
    return lambda plan: sum(bool(fits(writer)) for writer in plan.writers) >= count


def _has_visitor(fits: Callable[[VisitorPlan], object]) -> Condition:
    return lambda plan: any(fits(visitor) for visitor in plan.visitors)


def _is_so(fits: Condition) -> Condition:
    return fits


def _is_halted(writer: WriterPlan) -> bool:
    return writer.mishap is not None and writer.mishap.what == "stopped" and writer.mishap.for_s > LEASE_S


def _of_writers(plan: Plan) -> Iterator[Mishap]:
    return (writer.mishap for writer in plan.writers if writer.mishap is not None)


with_staging = _is_so(lambda plan: plan.has_staging)
without_staging = _is_so(lambda plan: not plan.has_staging)
has_storm = _is_so(lambda plan: not plan.faults.is_storage_reliable)
has_repeats = _is_so(lambda plan: plan.faults.twice > 0)
has_bodies = _is_so(lambda plan: plan.body_bytes < 1 << 20)
has_checkpoints = _is_so(lambda plan: plan.checkpoint_entries < 64)
has_viewer = _is_so(lambda plan: bool(plan.viewers))
keeps_replaced = _is_so(lambda plan: plan.retain_hours is not None)
is_replaced = _is_so(lambda plan: plan.replacement is not None)
has_stream = _is_so(lambda plan: bool(plan.streams))
has_foreign_names = _is_so(lambda plan: plan.damage is not None and plan.damage.what == "foreign names")
has_damage = _is_so(lambda plan: plan.damage is not None and plan.damage.what != "foreign names")

has_direct = _has_writer(lambda writer: writer.kind == "direct")
has_service = _has_writer(lambda writer: writer.kind == "batched")
has_shared_service = _has_writer(lambda writer: writer.is_shared)
has_overwrite = _has_writer(lambda writer: writer.mode == "overwrite")
has_rival_overwrites = _has_writer(lambda writer: writer.mode == "overwrite", count=2)
overwrites_what_was_read = _has_writer(lambda writer: writer.mode == "overwrite" and writer.read_before_s is not None)
has_rerun = _has_writer(lambda writer: writer.txn is not None)
has_fill = _has_writer(lambda writer: writer.fill_bytes)
has_changes = _has_writer(lambda writer: writer.is_keyed)
has_drift = _has_writer(lambda writer: writer.drifts)
loses_heartbeats = _has_writer(lambda writer: writer.beats_lost_after_s)
halts_at_its_flag = _has_writer(lambda writer: writer.mishap and writer.mishap.after == ("get", "/DIRECT"))
has_jobs_beside = _has_writer(lambda writer: writer.driver)
has_halted_service = _has_writer(lambda writer: writer.kind == "batched" and _is_halted(writer))
"""A writer that serves markers pauses for longer than its lease."""
pauses_while_rewriting = _has_writer(
    lambda writer: writer.fill_bytes and _is_halted(writer) and writer.mishap and writer.mishap.after in RECUT_LANDMARKS
)
"""A writer may lose a small file, and pause before its new rows are in the table."""

has_operator = _has_visitor(lambda visitor: visitor.what == "roll back one")
has_lease = _has_visitor(lambda visitor: visitor.what == "read under a lease")
has_lease_at_head = _has_visitor(lambda visitor: visitor.what == "read under a lease" and visitor.back is None)
halts_at_a_clean = _has_visitor(
    lambda visitor: (
        visitor.what == "read under a lease" and visitor.mishap and visitor.mishap.after == ("put", "/read/")
    )
)
"""A reader stops before it looks for open cleans."""


def has_late_tasks(plan: Plan) -> bool:
    """A task may still be at work when its job is being ended."""
    is_given_up = any(writer.raises or writer.patience_s < 1e9 or writer.mishap for writer in plan.writers)
    return is_given_up or any(len(task.attempts) > 1 for writer in plan.writers for task in writer.tasks)


def names_a_year(plan: Plan) -> bool:
    return plan.by_year and any(writer.mode == "overwrite" and writer.year is not None for writer in plan.writers)


def has_twins(plan: Plan) -> bool:
    """Two writers start at the same moment, and one of them may be paused there."""
    begun = [(writer.start_s, writer.clock_s) for writer in plan.writers]
    is_halted = any(mishap.what == "stopped" and mishap.after in _EARLY for mishap in _of_writers(plan))
    return len(set(begun)) < len(begun) and is_halted


def has_mishap_or_storm(plan: Plan) -> bool:
    """A process dies, or is cancelled during its work, or requests to storage are lost."""
    mishaps = [*_of_writers(plan), *(visitor.mishap for visitor in plan.visitors if visitor.mishap)]
    return any(mishap.what in ("killed", "cancelled") for mishap in mishaps) or has_storm(plan)


def has_wrong_clock(plan: Plan) -> bool:
    return any(mishap.what == "clock jumps" for mishap in _of_writers(plan)) and len(plan.writers) > 1


def has_many_servers(plan: MarkerPlan) -> bool:
    return len(plan.servers) > 1
