"""Tickets and reports as bytes: a checked map (``packed``), which a later release may add keys to.

A reader ignores keys that it does not know, and uses the default for one that is missing. So the tasks of the release
before serve a job of this one, and the other way round.
"""

from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any, TypeVar

from tallymark.engine.errors import InvalidRequest
from tallymark.engine.packed import pack_checked, unpack_checked

T = TypeVar("T")

Readers = Mapping[str, Callable[[Any], Any]]
"""For each field that msgpack does not return as it was: the function that makes it from what msgpack returns."""


def pack(value: Any, *, magic: bytes, format_: int, default: Callable[[Any], Any]) -> bytes:
    """Return the fields of a dataclass, each under its name. ``default`` as in ``pack_checked``."""
    return pack_checked(magic, {"format": format_, **plain(value)}, default=default)


def plain(value: Any) -> dict[str, Any]:
    """Return the fields of a dataclass by name, but for those that do not count when it is compared."""
    return {field.name: getattr(value, field.name) for field in fields(value) if field.compare}


def record(cls: type[T], found: Mapping[str, Any], readers: Readers | None = None) -> T:
    """Return the dataclass whose fields these are.

    Raises TypeError for a missing one without a default, and what its readers raise.
    """
    known = {field.name for field in fields(cls)} & found.keys()  # type: ignore[arg-type]
    readers = readers or {}
    return cls(**{name: readers[name](found[name]) if name in readers else found[name] for name in known})


def unpack(cls: type[T], data: bytes, *, magic: bytes, format_: int, readers: Readers) -> T:
    """Return the value whose fields were packed. Raises InvalidRequest."""
    what = f"the {cls.__name__} of a task"
    try:
        found = unpack_checked(magic, data)
    except ValueError as error:
        raise InvalidRequest(f"{what} is damaged on its way: {error}; run the task again") from error
    if found.get("format") != format_:
        raise InvalidRequest(
            f"{what} is of format {found.get('format')!r}, and this release reads format {format_}; "
            "install one release everywhere"
        )
    try:
        return record(cls, found, readers)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InvalidRequest(f"{what} has fields of no release: {error!r}; install one release everywhere") from error
