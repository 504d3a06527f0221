"""Documents printed by ``--json``: one object per command. Keys may be added; none is removed or changes its meaning.

Each command lists the keys of its document as a TypedDict; ``document_of`` fills it from the result of the engine.
Sizes are bytes, ages seconds, instants 17 digits of UTC time, paths relative to ``url``.
"""

from datetime import datetime
from typing import Any, TypedDict, TypeVar, get_args, get_type_hints, is_typeddict

from tallymark.backends.errors import TallymarkError

D = TypeVar("D")


class ErrorFields(TypedDict):
    type: str
    """The error's class in Python, such as ``UnsupportedTable``."""
    message: str


class ErrorDocument(TypedDict):
    """The last line on stderr of a command that failed."""

    error: ErrorFields


def document_of(kind: type[D], found: object, **others: object) -> D:
    """Return a document of this kind: each key from ``others``, otherwise from the attribute of ``found`` of that name.

    Nested objects become documents of the kinds that the keys have.
    """
    hints = get_type_hints(kind)
    values = {name: others[name] if name in others else getattr(found, name) for name in hints}
    return kind(**{name: _value(hints[name], value) for name, value in values.items()})


def _value(hint: Any, value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [_value(hint, each) for each in value]
    if isinstance(value, datetime):
        return value.isoformat()
    nested = _nested(hint)
    return value if nested is None or value is None or isinstance(value, dict) else document_of(nested, value)


def failure(error: TallymarkError) -> ErrorDocument:
    return {"error": {"type": type(error).__name__, "message": str(error)}}


def keys(kind: Any) -> str:
    """Return the keys of a document, such as ``{url, entries: [{position, instant}]}``."""
    return "{" + ", ".join(f"{name}{_nested_keys(hint)}" for name, hint in get_type_hints(kind).items()) + "}"


def _nested_keys(hint: Any) -> str:
    nested = _nested(hint)
    if nested is None:
        return ""
    return f": [{keys(nested)}]" if getattr(hint, "__origin__", None) is list else f": {keys(nested)}"


def _nested(hint: Any) -> Any:
    """Return the kind of the documents within a value, alone, optional or in a list; None without any."""
    return next((part for part in (hint, *get_args(hint)) if is_typeddict(part)), None)
