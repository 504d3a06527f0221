"""Retention of replaced files: the value in the call and the value fixed at creation."""

from dataclasses import dataclass, replace

from tallymark.engine.errors import InvalidRequest
from tallymark.engine.timeline.properties import (
    RETAIN_HOURS,
    Readers,
    TableProperties,
    check_readers,
    check_retain_hours,
)


@dataclass(frozen=True, slots=True)
class Retention:
    """The retention that a write specifies; None where it leaves that to the table. Raises InvalidRequest for invalid
    values.

    Both values are fixed when the table is created. Longer retention could not restore expired files, and shorter
    retention would break a promise to readers; ``Table.clean(retain_hours=...)`` overrides it once, explicitly.
    """

    readers: Readers | None = None
    retain_hours: float | None = None

    def __post_init__(self) -> None:
        if self.readers is not None:
            check_readers(self.readers)
        if self.retain_hours is not None:
            check_retain_hours(self.retain_hours)

    def of_new(self, wanted: TableProperties) -> TableProperties:
        """Return the retention of a table that is to be created."""
        readers = self.readers or "directory"
        hours = RETAIN_HOURS if readers == "table" and self.retain_hours is None else self.retain_hours
        return replace(wanted, readers=readers, retain_hours=hours)

    def check_kept(self, properties: TableProperties) -> None:
        """Raise InvalidRequest where the table exists and was created with other values."""
        for name, asked, there in (
            ("readers", self.readers, properties.readers),
            ("retain_hours", self.retain_hours, properties.retain_hours),
        ):
            if asked is not None and asked != there:
                raise InvalidRequest(
                    f"{name}={asked!r}: the table was made with {_made_with(properties)}, which is fixed; leave {name} "
                    "out, or write a new table"
                )


def hours_to_keep(properties: TableProperties, wanted: float | None) -> float | None:
    """Return the retention of a clean: its caller's value, or else the table's; None where replaced files are not kept.

    Raises:
        InvalidRequest: not a number of hours, or the table keeps nothing.
    """
    if wanted is None:
        return properties.retain_hours
    check_retain_hours(wanted)
    if properties.readers == "directory":
        raise InvalidRequest(
            f"retain_hours={wanted!r}: a table with readers='directory' keeps no replaced files; leave it out"
        )
    return wanted


def _made_with(properties: TableProperties) -> str:
    hours = "" if properties.retain_hours is None else f" and retain_hours={properties.retain_hours:g}"
    return f"readers={properties.readers!r}{hours}"
