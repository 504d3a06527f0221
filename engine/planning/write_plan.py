"""Plan of a write: its effects in one value; nothing of it has been done."""

import html
import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass

from tallymark.backends.meter import PriceList
from tallymark.engine.jobs.request import Mode
from tallymark.engine.jobs.result import shown_bytes
from tallymark.engine.planning.job_requests import RequestCounts
from tallymark.engine.sizing.plan import PlannedFile, SizingPlan
from tallymark.engine.timeline.entry import DataFile
from tallymark.engine.timeline.scope import Scope

PARTITIONS_SHOWN = 20
"""Partitions that a page or a notebook names; ``partitions`` and the JSON name all."""

FILES_SHOWN = 4
"""Planned files of one partition whose sizes are shown there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedPartition:
    """A partition that the write would add files to, or take files from."""

    partition: str
    is_new: bool
    """No live file lies there now."""
    files: int | None
    """To come, as estimated; None where that was not told."""
    rows: int | None
    """To come, as counted; None where they were not."""
    removed_files: int
    removed_rows: int
    removed_bytes: int
    planned: tuple[PlannedFile, ...] | None = None
    """The files to come, each with the small file that it fills; None where no sizes are planned."""

    @property
    def change(self) -> str:
        if self.removed_files:
            return "replaced" if self.files or self.files is None else "emptied"
        return "new" if self.is_new else "added to"

    @property
    def rewritten_bytes(self) -> int:
        """Of the files that are filled."""
        return sum(file.fill.bytes for file in self.planned or () if file.fill is not None)

    def fields(self) -> dict[str, object]:
        return {
            **{name: getattr(self, name) for name in self.__slots__},
            "change": self.change,
            "planned": None if self.planned is None else [_planned_fields(file) for file in self.planned],
            "rewritten_bytes": self.rewritten_bytes,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class WritePlan:
    """A write as it would be if it began now: a table where it is printed or shown in a notebook, an object as JSON.

    What goes is exact, as of ``position``. What comes is as good as ``estimate`` says.
    """

    url: str
    mode: Mode
    position: int
    """Of the newest log entry that the plan knows: another write after it may change what goes, or exclude this one."""
    partition_by: tuple[str, ...]
    is_created: bool
    """The table, which is not there yet."""
    committed_at: int | None
    """The position at which a write of the same txn was committed: this one would do nothing."""
    scope: Scope | None
    """What an overwrite replaces, whether anything lies there or not; None for an append."""
    partitions: tuple[PlannedPartition, ...]
    """All that would change, sorted by path."""
    removed: tuple[DataFile, ...]
    """The files that would go with their rows. Small files that are filled are not among them: their rows stay."""
    retain_hours: float | None
    """How long these stay for readers of older positions; None where they are deleted right after the commit."""
    rows: int | None
    """To come; None where they were not counted."""
    files: int | None
    """To come."""
    bytes: int | None
    """Of the rows to come: as they are planned, else by what a row of this table takes; None where that is not known.
    What is written once more comes on top (``rewritten_bytes``)."""
    sizing: SizingPlan | None = None
    """The files to come, as the write would plan them; None where sizing is off, or the rows were not counted."""
    estimate: str
    """How good these are."""
    requests: RequestCounts | None
    """Of the whole job, on an object store; None on others, or where ``files`` is not known. What depends on time is
    not among them: a beat every ten seconds, further segments of markers, repeats."""

    def cost(self, prices: PriceList) -> float | None:
        """Return what these requests and the bytes sent cost, in ``prices.currency``; None where they are not known."""
        if self.requests is None:
            return None
        return self.requests.cost(prices) + prices.sent_gb * ((self.bytes or 0) + self.rewritten_bytes) / 1e9

    @property
    def rewritten_bytes(self) -> int:
        """Of the small files that would be filled: read, and sent once more."""
        return 0 if self.sizing is None else self.sizing.rewritten_bytes

    @property
    def removed_bytes(self) -> int:
        return sum(file.bytes for file in self.removed)

    @property
    def removed_rows(self) -> int:
        return sum(file.rows for file in self.removed)

    @property
    def new_partitions(self) -> tuple[str, ...]:
        return tuple(each.partition for each in self.partitions if each.is_new)

    def fields(self) -> dict[str, object]:
        """All of it as values of JSON; of the files that would go, their paths."""
        return {
            **{name: getattr(self, name) for name in self.__slots__},
            "scope": None if self.scope is None else self.scope.fields(),
            "partitions": [each.fields() for each in self.partitions],
            "removed": [file.path for file in self.removed],
            "removed_files": len(self.removed),
            "removed_rows": self.removed_rows,
            "removed_bytes": self.removed_bytes,
            "sizing": None if self.sizing is None else _sizing_fields(self.sizing),
            "requests": None if self.requests is None else asdict(self.requests),
        }

    def to_json(self) -> str:
        """One object on one line, keyed by the names of the fields; sizes in bytes."""
        return json.dumps(self.fields())

    def __str__(self) -> str:
        facts = list(self.facts())
        width = max(len(label) for label, _ in facts)
        changes = [f"  {each.partition or '-'}: {shown_change(each)}" for each in self.partitions[:PARTITIONS_SHOWN]]
        return "\n".join([*(f"{label:<{width}}  {value}" for label, value in facts), *changes])

    def _repr_html_(self) -> str:
        facts = "".join(_html_row("th", label, value) for label, value in self.facts())
        changes = "".join(
            _html_row("td", each.partition or "-", shown_change(each)) for each in self.partitions[:PARTITIONS_SHOWN]
        )
        return f"<table>{facts}{changes}</table>"

    def facts(self) -> Iterator[tuple[str, str]]:
        """Labels and values as people read them; what there is nothing to say of is left out."""
        yield "table", f"{self.url}, {'to be created' if self.is_created else f'at position {self.position:,}'}"
        if self.committed_at is not None:
            yield "rerun", f"committed at position {self.committed_at:,} before; this write would do nothing"
        yield "mode", self.mode if self.scope is None else f"{self.mode} of {_shown_scope(self.scope)}"
        went = f"{len(self.removed):,} files, {self.removed_rows:,} rows, {shown_bytes(self.removed_bytes)}"
        if self.retain_hours is not None:
            went += f"; kept for {self.retain_hours:g} hours"
        yield "would go", went if self.removed else "nothing"
        yield "would come", _shown_estimate(self)
        if self.sizing is not None and self.mode == "append":
            yield "would fill", _shown_fills(self.sizing)
        yield "estimate", self.estimate
        yield "partitions", f"{len(self.partitions):,} would change, {len(self.new_partitions):,} of them new"
        if self.requests is not None:
            counts = asdict(self.requests).items()
            yield "requests", ", ".join(f"{count:,} {name}" for name, count in counts if count)


def shown_change(found: PlannedPartition) -> str:
    went = f", {found.removed_files:,} files of {shown_bytes(found.removed_bytes)} go" if found.removed_files else ""
    came = f", {found.files:,} files come" if found.files else ""
    rows = f" with {found.rows:,} rows" if found.rows else ""
    sizes = f": {shown_sizes(found)}" if found.planned else ""
    return f"{found.change}{went}{came}{rows}{sizes}"


def shown_sizes(found: PlannedPartition) -> str:
    """Of the files that are planned, a small one with what it is to come to."""
    planned = found.planned or ()
    more = [f"{len(planned) - FILES_SHOWN:,} more"] if len(planned) > FILES_SHOWN else []
    return ", ".join([*map(_shown_size, planned[:FILES_SHOWN]), *more])


def _shown_size(file: PlannedFile) -> str:
    return (
        shown_bytes(file.bytes) if file.fill is None else f"{shown_bytes(file.fill.bytes)} to {shown_bytes(file.bytes)}"
    )


def _shown_fills(plan: SizingPlan) -> str:
    if not plan.fills:
        return "no small file"
    cost = f"{plan.rewritten_per_byte:,.2f} bytes rewritten for each one inserted"
    return f"{len(plan.fills):,} small files of {shown_bytes(plan.rewritten_bytes)}: {cost}"


def _planned_fields(file: PlannedFile) -> dict[str, object]:
    fill = file.fill
    return {
        "rows": file.rows,
        "bytes": file.bytes,
        "fill": None if fill is None else {"path": fill.path, "rows": fill.rows, "bytes": fill.bytes},
    }


def _sizing_fields(plan: SizingPlan) -> dict[str, object]:
    return {
        "files": len(plan.files),
        "filled_files": len(plan.fills),
        "bytes": plan.bytes,
        "inserted_bytes": plan.inserted_bytes,
        "rewritten_bytes": plan.rewritten_bytes,
        "rewritten_per_byte": plan.rewritten_per_byte,
    }


def _shown_scope(scope: Scope) -> str:
    if scope.is_all:
        return "everything"
    paths = [*sorted(scope.partitions), *(f"{prefix}/..." for prefix in sorted(scope.prefixes))]
    more = [f"{len(paths) - 3:,} more"] if len(paths) > 3 else []
    return ", ".join([*paths[:3], *more]) or "nothing"


def _shown_estimate(plan: WritePlan) -> str:
    known = [
        None if plan.files is None else f"{plan.files:,} files",
        None if plan.rows is None else f"{plan.rows:,} rows",
        None if plan.bytes is None else f"about {shown_bytes(plan.bytes)}",
    ]
    return ", ".join(filter(None, known)) or "not known"


def _html_row(tag: str, label: str, value: str) -> str:
    return f"<tr><{tag} style='text-align:left'>{html.escape(label)}</{tag}><td>{html.escape(value)}</td></tr>"
