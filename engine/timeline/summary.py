"""Summary of a write in its log entry: facts that its files do not show."""

import math
from dataclasses import asdict, dataclass
from dataclasses import fields as dataclass_fields
from typing import Any, Literal, get_args

MarkerMode = Literal["batched", "direct", "mixed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SizingSummary:
    """The plan of a write's files compared with its result. All sizes are bytes of files."""

    planned_files: int
    planned_bytes: int
    """Planned size, with the rows of the small files to be filled."""
    planned_fills: int
    filled_files: int
    """Small files that the commit replaces: their rows are at the start of its own files."""
    rewritten_bytes: int
    """Size of these small files."""
    lost_fills: int
    """Lost fills: another write had replaced the small files, and the new rows have separate files."""
    size_error_p95: float | None
    """95th percentile, over planned and committed files, of the difference between actual and planned size over planned
    size. None where there are none. A file too large for one, and split, counts with its first part.
    """

    @classmethod
    def of_fields(cls, fields: dict[str, Any]) -> "SizingSummary":
        """Return the summary of ``fields``, as ``WriteSummary.of_fields`` does."""
        error = fields["size_error_p95"]
        return cls(
            size_error_p95=None if error is None else _number(error, float),
            **{name: _number(fields[name], int) for name in _SIZING_COUNTS},
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeSummary:
    """What became of the rows of an upsert or delete."""

    inserted: int
    updated: int
    deleted: int
    """Rows of the table that were deleted, superseded ones included."""
    ignored: int
    """Rows of the input without effect: older than the stored row, superseded by another of the input, or a delete of
    a key that the table does not have.
    """
    superseded: int
    """Rows of the table that were deleted because their key is elsewhere now: one of two rows of a key, or a row that
    has moved to another partition.
    """
    looked_up_files: int
    looked_up_bytes: int
    """Size of the files that may have had one of the keys."""
    rewritten_files: int
    rewritten_bytes: int
    """Size of the files of which rows were changed."""
    removed_files: int
    """Files all of whose rows were deleted: they were not read, or not beyond the columns of the predicate."""
    removed_bytes: int

    @classmethod
    def of_fields(cls, fields: dict[str, Any]) -> "ChangeSummary":
        found = {"removed_files": 0, "removed_bytes": 0, **fields}
        return cls(**{field.name: _number(found[field.name], int) for field in dataclass_fields(cls)})


_SIZING_COUNTS = tuple(field.name for field in dataclass_fields(SizingSummary) if field.name != "size_error_p95")


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteSummary:
    """Facts counted when everything but the commit was done."""

    marker_mode: MarkerMode
    """How markers were kept in effect: ``batched`` by the service; ``direct``, one object each, by the tasks; ``mixed``
    where some tasks could not reach the service for some time.
    """
    markers: int
    direct_markers: int
    """Of the markers, those that tasks have put themselves."""
    marker_objects: int
    """Objects that contained the markers at the commit."""
    puts: int
    """Puts of markers, the service's repeats included."""
    seconds: float
    """From the moment at which tasks could start to the moment at which the entry was put."""
    sizing: SizingSummary | None = None
    """None where no sizes were planned, and in entries of releases that did not record it."""
    changes: ChangeSummary | None = None
    """None for an append or overwrite."""

    def fields(self) -> dict[str, object]:
        """Return what is stored of it; ``changes`` only where there are any."""
        return {name: value for name, value in asdict(self).items() if name != "changes" or value is not None}

    @classmethod
    def of_fields(cls, fields: dict[str, Any]) -> "WriteSummary":
        """Return the summary of ``fields``; further fields, of a newer release, are ignored.

        Raises KeyError, TypeError, ValueError.
        """
        if fields["marker_mode"] not in get_args(MarkerMode):
            raise ValueError(f"{fields['marker_mode']!r} is not a marker mode")
        counts = {name: _number(fields[name], int) for name in ("markers", "direct_markers", "marker_objects", "puts")}
        sizing, changes = fields.get("sizing"), fields.get("changes")
        return cls(
            marker_mode=fields["marker_mode"],
            seconds=_number(fields["seconds"], float),
            sizing=None if sizing is None else SizingSummary.of_fields(sizing),
            changes=None if changes is None else ChangeSummary.of_fields(changes),
            **counts,
        )


def _number(value: Any, kind: type[int] | type[float]) -> Any:
    if not isinstance(value, kind) or isinstance(value, bool) or not (math.isfinite(value) and value >= 0):
        raise TypeError(f"{value!r} is not a {kind.__name__} of 0 or more")
    return value
