"""What must hold of a run. The promises themselves are ``tests/promises.py``; here it is said which hold when."""

import math

from tests.history import Told
from tests.promises import (
    all_or_nothing,
    bounded,
    committed_is_visible,
    durable_first,
    no_ack_came_too_late,
    nothing_left,
    nothing_lost,
    writers_go_by_what_they_have_read,
    writers_learn_the_truth,
)
from tests.simulation.asked import commits_replace_what_was_asked
from tests.simulation.lease_judge import readers_under_leases_find_their_files
from tests.simulation.row_judge import rows_are_those_of_committed_writers
from tests.simulation.view_judge import (
    a_view_is_never_newer_than_its_reader,
    answers_exactly_what_is_retained,
    never_misses_a_committed_file,
    never_serves_a_deleted_file,
)
from tests.simulation.world import LEASE, Outcome
from tests.table_invariants import (
    committed_files,
    data_files,
    decisions,
    fences,
    once_and_only_once,
    overwrites_replace_what_their_base_held,
    retained_files,
    table_is_at_rest,
)

ANSWERED_S = 500.0
"""The service, four puts of a direct marker, each given up after half a minute, and looks at the seal and the log."""

FAULTS = ("InvalidRequest", "CorruptObject", "UnsupportedTable", "NotAuthenticated")
"""Errors that nobody in a simulation has earned."""


def judge(outcome: Outcome) -> None:
    """Raises AssertionError with the history of the run, if a promise was broken."""
    history = outcome.history
    durable_first(history)
    if not outcome.plan.has_staging:  # where it was closed before the markers are read, a late ack leads to no file
        # An operator who rolls back what lives has not waited for its lease, but for half of it before he reads.
        no_ack_came_too_late(history, read_after_seal=outcome.has_operator)
    all_or_nothing(history)
    nothing_lost(history)
    readers_under_leases_find_their_files(history, expiry_s=LEASE.expiry_s)
    a_view_is_never_newer_than_its_reader(history)
    never_misses_a_committed_file(history)
    never_serves_a_deleted_file(history)
    answers_exactly_what_is_retained(history)
    bounded(history, within_s=ANSWERED_S, dead=outcome.disturbed)
    writers_learn_the_truth(history, outcome.swept)
    writers_go_by_what_they_have_read(history, outcome.swept)
    committed_is_visible(history, outcome.undisturbed)
    for storage, check in (
        (outcome.after_the_first_write, nothing_left),
        (_without_fresh_orphans(outcome), table_is_at_rest),
        (outcome.swept, table_is_at_rest),
        (outcome.swept, overwrites_replace_what_their_base_held),
        (outcome.swept, once_and_only_once),
    ):
        _with_history(outcome, lambda check=check, storage=storage: check(storage))
    _with_history(outcome, lambda: rows_are_those_of_committed_writers(outcome))
    _with_history(outcome, lambda: commits_replace_what_was_asked(outcome))
    _with_history(outcome, lambda: no_fence_is_left(outcome))
    _with_history(outcome, lambda: no_writer_fails_without_cause(outcome))


def no_fence_is_left(outcome: Outcome) -> None:
    """A day later the table is its committed files, what is retained, and nothing else."""
    assert not fences(outcome.swept)
    assert data_files(outcome.swept) == committed_files(outcome.swept) | retained_files(outcome.swept)


def no_writer_fails_without_cause(outcome: Outcome) -> None:
    """The rescuer, at peace, commits. Others may lose to rivals, to mishaps or to the weather, but by no fault of ours.

    A writer that beats in time is never taken for dead.
    """
    told = {event.writer: event for event in outcome.history.of(Told)}
    assert "rescuer" in told, "the rescuer did not come to an end"
    assert told["rescuer"].outcome == "committed", told["rescuer"]
    for event in told.values():
        assert event.outcome not in FAULTS, event
        assert event.outcome != "ConflictError" or _overwrites(outcome, event.writer), event
        if event.writer in outcome.undisturbed and not outcome.has_operator:
            assert event.outcome != "RolledBack", event
            assert event.outcome in ("committed", "TasksFailed", "ConflictError"), event
            assert event.outcome != "TasksFailed" or not _tasks_had_to_succeed(outcome, event.writer), event
    for instant, entry in decisions(outcome.at_rest).items():
        assert entry["kind"] in ("commit", "rollback", "clean"), instant


def _overwrites(outcome: Outcome, writer: str) -> bool:
    """An append never fails for others' sake, whichever small file it had taken."""
    return outcome.plan.writers[int(writer.removeprefix("writer"))].mode == "overwrite"


def _tasks_had_to_succeed(outcome: Outcome, writer: str) -> bool:
    """Whether each task had an attempt that nothing could keep from its end."""
    weather, plan = outcome.plan.weather, outcome.plan.writers[int(writer.removeprefix("writer"))]
    if weather.reset or weather.unreachable or not weather.is_kind_to_storage:
        return False
    if plan.raises or plan.patience_s < math.inf:
        return False
    return all(any(not (each.raises or each.mishap) for each in task.attempts) for task in plan.tasks)


def _without_fresh_orphans(outcome: Outcome) -> dict[str, bytes]:
    """Storage without the bodies of entries that never came into the log: they are kept for a day."""
    left = {path for path in outcome.at_rest if path.startswith(".hoodie/.tallymark/body/")} - outcome.swept.keys()
    return {path: data for path, data in outcome.at_rest.items() if path not in left}


def _with_history(outcome: Outcome, check) -> None:
    try:
        check()
    except AssertionError as error:
        raise AssertionError(f"{error}\n{outcome.history!r}") from error
