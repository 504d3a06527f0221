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
    """What a write says; None where it leaves that to the table. Making one raises InvalidRequest for what cannot be.

    Both are fixed when the table is made. Longer retention could not bring back what has gone, shorter retention would
    take from readers what they were promised; ``Table.clean(retain_hours=...)`` says so for once, and aloud.
    """

    readers: Readers | None = None
    retain_hours: float | None = None

    def __post_init__(self) -> None:
        if self.readers is not None:
            check_readers(self.readers)
        if self.retain_hours is not None:
            check_retain_hours(self.retain_hours)

    def of_new(self, wanted: TableProperties) -> TableProperties:
        """Return the table that is to be made."""
        readers = self.readers or "directory"
        hours = RETAIN_HOURS if readers == "table" and self.retain_hours is None else self.retain_hours
        return replace(wanted, readers=readers, retain_hours=hours)

    def check_kept(self, properties: TableProperties) -> None:
        """Raise InvalidRequest where the table exists and was made with something else."""
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
    """Return what a clean goes by: what its caller wants, or else the table; None where replaced files are not kept.

    Raises:
        InvalidRequest: no number of hours, or a table that keeps nothing.
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
