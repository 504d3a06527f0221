"""Judge of a round at rest: what the processes noted and the bare objects of a table must tell the same story.

Nothing here reads storage through the library. Which files are live is read by ``live_files``; the rows that they must
hold follow from the plans, and from the order, instants and bases of the log's entries alone.
"""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests import table_invariants as invariants
from tests.stores.second_reader import read_table
from tests.system.chaos.lives import digest_of, rows_of_file
from tests.system.chaos.plans import JobPlan
from tests.system.pool_worker import Row
from tests.table_invariants import Storage


def live_files(storage: Storage) -> set[str]:
    """By the second reader, which is written from the page on the format."""
    return {*read_table(storage).files()}


AT_REST = (
    invariants.only_committed_files_exist,
    invariants.every_committed_file_exists,
    invariants.no_bookkeeping_is_left,
    invariants.projection_follows_the_log,
    invariants.partitions_are_known_to_hudi,
    invariants.every_file_is_added_once,
    invariants.once_and_only_once,
    invariants.overwrites_replace_what_their_base_held,
)
"""A void entry is no defect here: a writer that was stopped before its put may leave one."""


@dataclass(slots=True)
class Story:
    """What the processes of a round were told."""

    notes: list[dict[str, Any]] = field(default_factory=list)

    @classmethod
    def of(cls, folder: Path) -> "Story":
        """From all journals; a last line that its writer had no time to finish is left out."""
        lines = [line for file in sorted(folder.glob("*.journal")) for line in file.read_bytes().splitlines(True)]
        return cls([json.loads(line) for line in lines if line.endswith(b"\n")])

    def having(self, key: str) -> Iterator[dict[str, Any]]:
        return (note for note in self.notes if key in note)


@dataclass(frozen=True, slots=True)
class Span:
    """A row of the table from one position of the log to before another."""

    row: Row
    added: int
    removed: int | None


def judge(objects: Mapping[str, Storage], plans: Mapping[int, JobPlan], story: Story) -> Iterator[str]:
    """Yield each promise that was broken; ``objects`` are those of each table at rest."""
    yield from (note["defect"] for note in story.having("defect"))
    for table, storage in objects.items():
        own = {number: plan for number, plan in plans.items() if plan.table == table}
        try:
            yield from (f"{table}: {problem}" for problem in _judge(table, storage, own, story))
        except Exception as error:  # of objects that cannot even be read
            yield f"{table}: {error!r}"


def _judge(table: str, storage: Storage, plans: Mapping[int, JobPlan], story: Story) -> Iterator[str]:
    for check in AT_REST:
        try:
            check(storage)
        except AssertionError as error:
            yield f"{check.__name__}: {error}"
    yield from read_table(storage).problems
    if live_files(storage) != {*read_table(storage, from_checkpoint=False).files()}:
        yield "from its checkpoint on, the log has other files"
    if live_files(storage) != invariants.hudi_files(storage) - invariants.fences(storage):
        yield "readers of the Hudi format find other files"
    instants = {note["began"]: plans[note["plan"]] for note in story.having("began") if note["plan"] in plans}
    spans = _replayed(storage, instants)
    found = Counter(row for path in live_files(storage) for row in rows_of_file(storage[path]))
    wanted = Counter(span.row for span in spans if span.removed is None)
    if found != wanted:
        yield f"rows lost: {_some(wanted - found)}; rows too many: {_some(found - wanted)}"
    yield from _judge_told(storage, plans, story)
    for note in story.having("read"):
        if note["table"] == table:
            rows = [span.row for span in spans if _is_live(span, note["read"])]
            if (note["rows"], note["digest"]) != (len(rows), digest_of(rows)):
                yield f"a leased reader saw {note['rows']} rows at {note['read']}, of {len(rows)}"


def _judge_told(storage: Storage, plans: Mapping[int, JobPlan], story: Story) -> Iterator[str]:
    positions = {entry["nonce"]: n for n, entry in enumerate(invariants.log_entries(storage), start=1)}
    committed = {entry["instant"]: positions[entry["nonce"]] for entry in invariants.commits(storage)}
    runs: dict[int, set[str]] = {}
    for note in story.having("began"):
        runs.setdefault(note["plan"], set()).add(note["began"])
    for note in story.having("told"):
        if (plan := plans.get(note["plan"])) is None:
            continue
        if note["told"] == "committed" and committed.get(note["instant"]) != note["position"]:
            yield f"told committed, and is not at that position: {note}"
        is_there = not committed.keys().isdisjoint(runs.get(plan.number, set()))
        if note["told"] == "not committed" and plan.txn is None and is_there:
            yield f"told not committed, and is: {note}"

    txns = {entry.get("txn") for entry in invariants.commits(storage)}
    for note in story.having("refused"):
        if note["plan"] in plans and plans[note["plan"]].txn not in txns:
            yield f"refused as archived, and never committed: {note}"


def _replayed(storage: Storage, instants: Mapping[str, JobPlan]) -> Sequence[Span]:
    """The rows that plans have added and replaced, in the order of the log."""
    spans: list[Span] = []
    counts = {entry["nonce"] for entry in invariants.commits(storage)}
    for position, entry in enumerate(invariants.log_entries(storage), start=1):
        if entry["nonce"] in counts:
            plan = instants[entry["instant"]]
            spans = [
                Span(span.row, span.added, position)
                if _is_live(span, entry["base"]) and _is_live(span, position) and plan.replaces(span.row[1])
                else span
                for span in spans
            ]
            spans += [Span(row, position, None) for row in plan.rows]
    return spans


def _is_live(span: Span, position: int) -> bool:
    return span.added <= position and (span.removed is None or position < span.removed)


def _some(rows: Iterable[Row]) -> str:
    ids = sorted(row[:2] for row in rows)
    return f"{len(ids)} {ids[:4]}"
