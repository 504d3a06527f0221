"""Checks of a run on a table. The promises are in ``tests/promises.py``; ``judge`` decides which apply, and when."""

import io
import math
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

import pyarrow.parquet as pq

from tests.history import Befell, History, Landed, Replaced, Told
from tests.promises import (
    UNCLEAR,
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
from tests.simulation.executor import ASTRAY, ROWS, first_flight, partition_of
from tests.simulation.keyed.rows import Row, check_changed, key_of, order_of
from tests.simulation.plan import YEARS, AttemptPlan, TaskPlan, WriterPlan
from tests.simulation.reader_judge import (
    a_view_is_never_newer_than_its_reader,
    answers_exactly_what_is_retained,
    never_misses_a_committed_file,
    never_serves_a_deleted_file,
    readers_under_leases_find_their_files,
)
from tests.simulation.together.driver import NAME
from tests.simulation.together.stream_judge import Append, appends_of, check_appends
from tests.simulation.world import LEASE, Outcome
from tests.table_invariants import (
    LOG,
    Storage,
    commits,
    committed_files,
    data_files,
    decisions,
    entry_fields,
    fences,
    file_path,
    holds,
    log_entries,
    members,
    once_and_only_once,
    overwrites_replace_what_their_base_held,
    retained_files,
    table_is_at_rest,
)

ANSWERED_S = 1500.0
"""The service for a minute, four puts of a direct marker, each given up after half a minute, and reads of the seal and
of a log of some entries with bodies, of which each may take two minutes.
"""

FAULTS = ("InvalidRequest", "CorruptObject", "LostEntries", "UnsupportedTable", "NotAuthenticated")
"""Errors that no process in a simulation may get."""


def judge(outcome: Outcome) -> None:
    """Raises AssertionError with the history of the run, if a promise was broken."""
    for life in outcome.lives:
        _judge_life(outcome, life.history)
    history, last = outcome.history, outcome.lives[-1]
    bounded(history, within_s=ANSWERED_S, dead=outcome.disturbed)
    writers_learn_the_truth(last.history, outcome.swept)
    writers_go_by_what_they_have_read(last.history, outcome.swept)
    for storage, check in (
        (outcome.after_the_first_write, nothing_left),
        (_without_fresh_orphans(outcome), table_is_at_rest),
        (outcome.swept, table_is_at_rest),
        (outcome.swept, overwrites_replace_what_their_base_held),
        (outcome.swept, once_and_only_once),
        (outcome.swept, no_fence_is_left),
    ):
        rest = _without_late_files(outcome, last.without_remains(storage))
        _with_history(outcome, lambda check=check, rest=rest: check(rest))
    _with_history(outcome, lambda: rows_are_those_of_committed_writers(outcome))
    if outcome.plan.streams:
        _with_history(outcome, lambda: acknowledged_appends_are_committed(outcome))
    _with_history(outcome, lambda: commits_replace_what_was_requested(outcome))
    if len(outcome.lives) == 1:
        _with_history(outcome, lambda: no_append_of_other_keys_makes_a_conflict(outcome))
    _with_history(outcome, lambda: no_write_fails_without_cause(outcome))
    _with_history(outcome, lambda: jobs_that_outlive_their_table_learn_it(outcome))


def _without_late_files(outcome: Outcome, storage: dict[str, bytes]) -> dict[str, bytes]:
    late = _late_files(outcome)
    return {path: data for path, data in storage.items() if path not in late}


def _late_files(outcome: Outcome) -> frozenset[str]:
    """What a task has put after the rollback of its instant, whose markers were damaged: the rollback found the files
    that were there, and could not fence the others.
    """
    if outcome.damaged is None:
        return frozenset()
    late, is_decided = set(), False
    for event in outcome.history.of(Landed):
        if event.path.startswith(LOG):
            is_decided |= (
                decisions(outcome.swept).get(outcome.damaged, {}).get("nonce") == entry_fields(event.data)["nonce"]
            )
        elif is_decided and event.path.endswith(f"_{outcome.damaged}.parquet"):
            late.add(event.path)
    return frozenset(late)


def _judge_life(outcome: Outcome, history: History) -> None:
    """What must hold at each moment."""
    durable_first(history)
    if not outcome.plan.has_staging:  # where it was closed before the markers are read, a late ack leads to no file
        # An operator who rolls back what lives has not waited for its lease, but for half of it before he reads.
        no_ack_came_too_late(history, read_after_seal=outcome.has_operator, expiry_s=LEASE.expiry_s)
    unfenced = _late_files(outcome)
    all_or_nothing(history, unfenced)
    nothing_lost(history, unfenced)
    readers_under_leases_find_their_files(history, expiry_s=LEASE.expiry_s)
    a_view_is_never_newer_than_its_reader(history)
    never_misses_a_committed_file(history)
    never_serves_a_deleted_file(history)
    answers_exactly_what_is_retained(history)
    committed_is_visible(history, outcome.undisturbed)


def jobs_that_outlive_their_table_learn_it(outcome: Outcome) -> None:
    """None is told of a commit but one that counts in the life in which it was decided."""
    if len(outcome.lives) == 1:
        decided = [member for entry in log_entries(outcome.swept) for member in members(entry)]
        assert len(decided) == len(decisions(outcome.swept)), "an entry is void"
        return
    former, last = outcome.lives
    committed = {entry["instant"] for storage in (former.storage, outcome.swept) for entry in commits(storage)}
    writers_learn_the_truth(former.history, former.storage)
    writers = _writers(outcome)
    for event in outcome.history.of(Told):
        is_own = writers.get(event.instant or "") == event.writer  # no writer is known of one ended before it was noted
        if event.instant in last.outliving and event.outcome not in UNCLEAR and is_own:
            assert (event.outcome == "committed") == (event.instant in committed), event


def no_fence_is_left(storage: Storage) -> None:
    """A day later the table is its committed files, what is retained, and nothing else."""
    assert not fences(storage)
    assert data_files(storage) == committed_files(storage) | retained_files(storage)


def no_write_fails_without_cause(outcome: Outcome) -> None:
    """The rescuer, undisturbed, commits. Others may lose to rivals, mishaps or faults, but not by a fault of ours.

    A writer whose heartbeats are in time is never treated as dead.
    """
    told = {event.writer: event for event in outcome.history.of(Told)}
    at_work = {name for event in outcome.history.of(Replaced) for name in event.at_work}
    replacement = outcome.plan.replacement
    may_lack_entries = replacement is not None and replacement.copied_at_s is not None
    assert "rescuer" in told, "the rescuer did not come to an end"
    assert told["rescuer"].outcome == "committed", told["rescuer"]
    for event in told.values():
        if event.writer in at_work or _needs_what_is_archived(outcome, event) or _has_drifted(outcome, event):
            continue
        if may_lack_entries and event.outcome in ("CorruptObject", "LostEntries"):
            continue
        assert event.outcome not in FAULTS, event
        assert event.outcome != "ConflictError" or _may_lose(outcome, event.writer), event
        if event.writer in outcome.undisturbed and not outcome.has_operator:
            assert event.outcome != "RolledBack", event
            assert event.outcome in ("committed", "TasksFailed", "ConflictError"), event
            assert event.outcome != "TasksFailed" or not _tasks_had_to_succeed(outcome, event.writer), event
    for instant, entry in decisions(outcome.at_rest).items():
        assert entry["kind"] in ("commit", "rollback", "clean"), instant


def _may_lose(outcome: Outcome, writer: str) -> bool:
    """An append never fails for others' sake, whichever small file it had taken."""
    return _plan_of(outcome, writer).mode != "append"


def _plan_of(outcome: Outcome, writer: str) -> WriterPlan:
    return outcome.plan.writers[int(writer.removeprefix("writer"))]


def _has_drifted(outcome: Outcome, event: Told) -> bool:
    """Whether the writer is told so, whose input was not the same the second time."""
    is_so = event.outcome == "InvalidRequest" and "the input was not the same" in event.message
    return is_so and _plan_of(outcome, event.writer).drifts


def _needs_what_is_archived(outcome: Outcome, event: Told) -> bool:
    """Whether the writer goes by a position that it had read long before, or runs a txn again, and the log is archived
    there; or it was slow to start, and the log that it had read was archived before its instant was reserved.
    """
    if event.outcome == "TryAgain" and "the log before it is archived" in event.message:
        return outcome.plan.kept_entries < 64
    if event.outcome != "InvalidRequest" or " archived" not in event.message:
        return False
    plan = _plan_of(outcome, event.writer)
    return plan.read_before_s is not None or plan.txn is not None


def _tasks_had_to_succeed(outcome: Outcome, writer: str) -> bool:
    """Whether each task had an attempt that nothing could keep from its end."""
    faults, plan = outcome.plan.faults, _plan_of(outcome, writer)
    if faults.reset or faults.unreachable or not faults.is_storage_reliable:
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


def rows_are_those_of_committed_writers(outcome: Outcome) -> None:
    """Each commit adds the rows of its writer, of one attempt a task, once; the rows that it removes it holds once
    more, or they are what its overwrite replaces: all that its base held there."""
    state = _replayed(outcome).state
    doubled = [row for row, count in state.items() if count > 1]
    assert not doubled, f"rows stand in the table twice: {doubled}"


def acknowledged_appends_are_committed(outcome: Outcome) -> None:
    """Each append that has returned was in the log by then; each is there once, in the order of its producer."""
    check_appends(outcome, _replayed(outcome).appends)


def _replayed(outcome: Outcome) -> "_RowReplay":
    replay = _RowReplay(outcome)
    counts = {entry["nonce"] for entry in decisions(outcome.swept).values() if entry["kind"] == "commit"}
    for position, entry in enumerate(log_entries(outcome.swept), start=1):
        for member in (member for member in members(entry) if member["nonce"] in counts):
            replay.apply(position, member)
        replay.states.append(replay.state)
    return replay


class _RowReplay:
    """The rows of the table after one commit after the other, each of which is checked."""

    def __init__(self, outcome: Outcome) -> None:
        self.state: Counter[Row] = Counter()
        self.states = [self.state]
        """At each position so far."""
        self.appends: list[tuple[int, Append]] = []
        """Those of streams, each with its position."""
        self._outcome = outcome
        self._files = _rows_of_files(outcome)
        self._writer_of = _writers(outcome)

    def apply(self, position: int, entry: Mapping[str, Any]) -> None:
        outcome, before, writer = self._outcome, self.state, self._writer_of[entry["instant"]]
        added, removed = _rows(self._files, entry["added"]), _rows(self._files, entry["removed"])
        assert removed <= before, f"entry {position} of {writer} lets go rows twice"
        self.state = before - removed + added
        if writer == NAME:
            self.appends += [(position, append) for append in appends_of(outcome, entry, added)]
            return
        if entry["operation"] in ("upsert", "delete"):
            _is_applied(outcome, writer, entry, before, self.state)
            return
        is_mine = partial(_is_of, writer)
        mine = Counter({row: count for row, count in added.items() if is_mine(row)})
        _one_attempt_a_task(mine, writer, outcome)
        rewritten, replaced = added - mine, _replaced(entry, self.states)
        assert rewritten + replaced == removed, (
            f"entry {position} of {writer} lets go {sorted(removed.items())}, of which it holds "
            f"{sorted(rewritten.items())} and replaces {sorted(replaced.items())}"
        )


def _is_applied(
    outcome: Outcome, writer: str, entry: Mapping[str, Any], before: Counter[Row], after: Counter[Row]
) -> None:
    """Check that the entry has applied the writer's batch, and that the writer was told what it counts."""
    plan, counts = _plan_of(outcome, writer), entry["summary"]["changes"]
    batch, is_in_partition = _batch(outcome, writer), outcome.plan.unique_in == "partition"
    check_changed(before, after, batch, counts, mode=plan.mode, matched=plan.matched, by_partition=is_in_partition)
    told = [event.message for event in outcome.history.of(Told) if event.instant == entry["instant"]]
    shown = ", ".join(f"{name}={counts[name]}" for name in ("inserted", "updated", "deleted", "ignored", "superseded"))
    assert all(shown in message or "position" not in message for message in told), f"{told}, and counted are {counts}"


def _batch(outcome: Outcome, writer: str) -> list[Row]:
    """Return the rows of a write by key: those of a first attempt, and what it reads does not depend on that."""
    same = AttemptPlan(host="", start_s=0.0, row_s=0.0)
    tasks = enumerate(outcome.tasks[writer])
    return [row for task, plan in tasks for row in _written(writer, task, 0, plan, same, outcome)]


def no_append_of_other_keys_makes_a_conflict(outcome: Outcome) -> None:
    """A write by key is refused if another has replaced files, or added one of its keys; not for other reasons."""
    lost = [event for event in outcome.history.of(Told) if event.outcome == "ConflictError"]
    for event in lost if outcome.plan.unique_in else ():
        if not _plan_of(outcome, event.writer).is_keyed:
            continue
        files, writer_of = _rows_of_files(outcome), _writers(outcome)
        keys = {key_of(flight) for flight, _ in _batch(outcome, event.writer)}
        assert "have added files for" in event.message or any(
            entry["removed"] or keys & {key_of(flight) for flight, _ in _rows(files, entry["added"])}
            for entry in commits(outcome.swept)
            if writer_of[entry["instant"]] != event.writer
        ), event


def _replaced(entry: Mapping[str, Any], states: list[Counter[Row]]) -> Counter[Row]:
    """The rows that an overwrite has seen in what it replaces."""
    if entry["scope"] is None:
        return Counter()
    return Counter({row: count for row, count in states[entry["base"]].items() if holds(entry["scope"], row[1])})


def _one_attempt_a_task(rows: Counter[Row], writer: str, outcome: Outcome) -> None:
    left = rows
    for task, plan in enumerate(outcome.tasks[writer]):
        whole = [_written(writer, task, number, plan, each, outcome) for number, each in enumerate(plan.attempts)]
        found = [one for one in whole if one <= left]
        assert found, f"of task {task} of {writer} no attempt's rows are all there: {sorted(rows.items())}"
        left = left - max(found, key=len)
    assert not left, f"rows of {writer} that no winner has written, or that stand there twice: {sorted(left.items())}"


def _written(
    writer: str, task: int, number: int, plan: TaskPlan, attempt: AttemptPlan, outcome: Outcome
) -> Counter[Row]:
    batches = [(place, month, ROWS) for place, month in enumerate(plan.months)]
    if attempt.astray is not None:
        batches.append((ASTRAY, attempt.astray, 1))
    return Counter(
        (first_flight(writer, task, number, place) + row, partition_of(month, by_year=outcome.plan.by_year))
        for place, month, count in batches
        for row in range(count)
    )


def _is_of(writer: str, row: Row) -> bool:
    return row[0] // 100_000 == first_flight(writer, 0, 0, 0) // 100_000


def _rows(files: Mapping[str, Counter[Row]], named: list[Any]) -> Counter[Row]:
    return sum((files[file_path(file)] for file in named), Counter[Row]())


def _rows_of_files(outcome: Outcome) -> dict[str, Counter[Row]]:
    """Return the rows of all data files that ever existed, deleted ones included."""
    found: dict[str, Counter[Row]] = {}
    for event in outcome.history.of(Landed):
        if event.path.endswith(".parquet"):
            found[event.path] = Counter(_read(event.path, event.data))
    return found


def _read(path: str, data: bytes) -> Iterator[Row]:
    partition = path.rpartition("/")[0]
    for row in pq.ParquetFile(io.BytesIO(data)).read().to_pylist():
        assert partition.endswith(f"month={row['month']}"), f"{path} holds {row}"
        assert row.get("key", key_of(row["flight"])) == key_of(row["flight"]), f"{path} holds {row}"
        assert row.get("at", order_of(row["flight"])) == order_of(row["flight"]), f"{path} holds {row}"
        yield row["flight"], partition


def _writers(outcome: Outcome) -> dict[str, str]:
    """Instant to the name of its writer: of the later one where a table was made again, and clocks gave one twice."""
    return {
        event.what.rpartition(" ")[2]: event.process
        for event in outcome.history.of(Befell)
        if event.what.startswith("has instant ")
    }


def commits_replace_what_was_requested(outcome: Outcome) -> None:
    """The scope of each commit is what its writer had named, and its files lie nowhere else."""
    for number, entry in _commits(outcome):
        writer = outcome.plan.writers[number]
        part = _named_part(writer, by_year=outcome.plan.by_year)
        wanted = _requested_scope(writer, part, {file[0] for file in entry["added"]})
        assert entry["scope"] == wanted, f"writer{number} had asked for {wanted}, and has replaced {entry['scope']}"
        astray = [file for file in entry["added"] if part and not f"{file[0]}/".startswith(f"{part}/")]
        assert not astray, f"writer{number} had named {part}, and has committed {astray}"


def _commits(outcome: Outcome) -> Iterator[tuple[int, dict[str, Any]]]:
    """Number of the writer, and entry."""
    decided = decisions(outcome.swept)
    for instant, writer in _writers(outcome).items():
        entry = decided.get(instant)
        if entry is not None and entry["kind"] == "commit" and writer.startswith("writer"):
            yield int(writer.removeprefix("writer")), entry


def _named_part(writer: WriterPlan, *, by_year: bool) -> str:
    """The path of what it names; empty where it names nothing."""
    if writer.month is not None:
        month = f"month={writer.month}"
        return f"year={YEARS[writer.month]}/{month}" if by_year else month
    return f"year={writer.year}" if by_year and writer.year is not None else ""


def _requested_scope(writer: WriterPlan, part: str, touched: set[str]) -> dict[str, Any] | None:
    """As an entry has it."""
    if writer.mode != "overwrite":
        return None
    if writer.month is not None:
        return {"all": False, "partitions": [part], "prefixes": []}
    if writer.dynamic:
        return {"all": False, "partitions": sorted(touched), "prefixes": []}
    return {"all": not part, "partitions": [], "prefixes": [part] if part else []}
