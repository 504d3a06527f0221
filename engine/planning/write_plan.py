"""Plan of a write: its effects in one value; nothing of it has been done."""

import html
import json
from collections.abc import Iterator
from dataclasses import dataclass

from tallymark.engine.jobs.request import Mode
from tallymark.engine.jobs.result import shown_bytes
from tallymark.engine.sizing.plan import PlannedFile, SizingPlan
from tallymark.engine.timeline.entry import DataFile
from tallymark.engine.timeline.scope import Scope

PARTITIONS_SHOWN = 20
"""Partitions that a page or a notebook names; ``partitions`` and the JSON name all."""

FILES_SHOWN = 4
"""Planned files of one partition whose sizes are shown there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedPartition:
    """A partition that the write would add files to, or remove files from."""

    partition: str
    is_new: bool
    """Whether it has no live file now."""
    files: int | None
    """Files to add, estimated; None without an estimate."""
    rows: int | None
    """Rows to add, counted; None where they were not counted."""
    removed_files: int
    removed_rows: int
    removed_bytes: int
    planned: tuple[PlannedFile, ...] | None = None
    """The files to add, each with the small file that it fills; None where no sizes are planned."""

    @property
    def change(self) -> str:
        if self.removed_files:
            return "replaced" if self.files or self.files is None else "emptied"
        return "new" if self.is_new else "added to"

    @property
    def changed_rows(self) -> int:
        """Rows that a write by key finds here by their key and changes."""
        return sum(file.updates for file in self.planned or ())

    @property
    def rewritten_bytes(self) -> int:
        """Size of the files that are filled or whose rows are changed."""
        return sum(file.fill.bytes for file in self.planned or () if file.fill is not None)

    def fields(self) -> dict[str, object]:
        return {
            **{name: getattr(self, name) for name in self.__slots__},
            "change": self.change,
            "planned": None if self.planned is None else [_planned_fields(file) for file in self.planned],
            "rewritten_bytes": self.rewritten_bytes,
            "changed_rows": self.changed_rows,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class WritePlan:
    """The effects that a write would have now. Printed it is a table, in a notebook too; ``to_json`` gives an object.

    What it removes is exact, as of ``position``. What it adds is as exact as ``estimate`` states.
    """

    url: str
    mode: Mode
    position: int
    """Position of the newest log entry that the plan has read. A later write may change what this one would remove, or
    conflict with it."""
    partition_by: tuple[str, ...]
    is_created: bool
    """Whether the write would create the table."""
    committed_at: int | None
    """The position at which a write with the same txn was committed: this one would do nothing. None without one."""
    scope: Scope | None
    """The part of the table that an overwrite replaces, empty or not; None for an append."""
    partitions: tuple[PlannedPartition, ...]
    """Every partition that would change, sorted by path."""
    removed: tuple[DataFile, ...]
    """The files that would be removed with their rows. Files to fill or to change are not included: rows stay."""
    retain_hours: float | None
    """How long removed files are retained; None where they are deleted right after the commit."""
    rows: int | None
    """Rows to add; None where they were not counted."""
    files: int | None
    """Files to add; None without an estimate."""
    bytes: int | None
    """Size of the rows to add: as planned, otherwise by the mean size of a row in this table; None where neither is
    known. Rewritten bytes are not included (``rewritten_bytes``)."""
    sizing: SizingPlan | None = None
    """The files to add, as the write would plan them; None where sizing is off, or the rows were not counted."""
    estimate: str
    """How exact the three above are."""

    @property
    def rewritten_bytes(self) -> int:
        """Size of the files that would be filled or changed: they are read and written again."""
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
        """Return all fields as JSON values; removed files as their paths."""
        return {
            **{name: getattr(self, name) for name in self.__slots__},
            "scope": None if self.scope is None else self.scope.fields(),
            "partitions": [each.fields() for each in self.partitions],
            "removed": [file.path for file in self.removed],
            "removed_files": len(self.removed),
            "removed_rows": self.removed_rows,
            "removed_bytes": self.removed_bytes,
            "sizing": None if self.sizing is None else _sizing_fields(self.sizing),
        }

    def to_json(self) -> str:
        """Return one JSON object on one line, with the names of the fields as keys; sizes in bytes."""
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
        """Yield labels and values for display, without empty ones."""
        yield "table", f"{self.url}, {'to be created' if self.is_created else f'at position {self.position:,}'}"
        if self.committed_at is not None:
            yield "rerun", f"committed at position {self.committed_at:,} before; this write would do nothing"
        yield "mode", self.mode if self.scope is None else f"{self.mode} of {_shown_scope(self.scope)}"
        removed = f"{len(self.removed):,} files, {self.removed_rows:,} rows, {shown_bytes(self.removed_bytes)}"
        if self.retain_hours is not None:
            removed += f"; retained for {self.retain_hours:g} hours"
        yield "would remove", removed if self.removed else "nothing"
        yield "would add", _shown_estimate(self)
        if self.sizing is not None and self.mode == "append":
            yield "would fill", _shown_fills(self.sizing)
        if self.sizing is not None and self.mode in ("upsert", "delete"):
            yield "would rewrite", _shown_rewrites(self.sizing)
        yield "estimate", self.estimate
        yield "partitions", f"{len(self.partitions):,} would change, {len(self.new_partitions):,} of them new"


def shown_change(found: PlannedPartition) -> str:
    removed = f", remove {found.removed_files:,} files of {shown_bytes(found.removed_bytes)}"
    added = f", add {found.files:,} files" if found.files else ""
    rows = f" with {found.rows:,} rows" if found.rows else ""
    changed = f", {found.changed_rows:,} keys found" if found.changed_rows else ""
    sizes = f": {shown_sizes(found)}" if found.planned else ""
    return f"{found.change}{removed if found.removed_files else ''}{added}{rows}{changed}{sizes}"


def shown_sizes(found: PlannedPartition) -> str:
    """Return the sizes of planned files; of a file to fill, its size now and then."""
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


def _shown_rewrites(plan: SizingPlan) -> str:
    size = f"{len(plan.fills):,} files of {shown_bytes(plan.rewritten_bytes)}"
    return f"{size}, {plan.rewritten_per_byte:,.2f} bytes for each one of the input; {plan.changed_rows:,} keys found"


def _planned_fields(file: PlannedFile) -> dict[str, object]:
    fill = file.fill
    return {
        "rows": file.rows,
        "bytes": file.bytes,
        "updates": file.updates,
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
