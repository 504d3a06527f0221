"""``tallymark explain --json``: why a file is where it is."""

from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypedDict

if TYPE_CHECKING:
    from tallymark.engine.table import Table


class ExplainDocument(TypedDict):
    url: str
    path: str
    """Relative to ``url``."""
    fate: Literal[
        "live",
        "missing",
        "retained",
        "replaced",
        "fence",
        "left out",
        "rolled back",
        "uncommitted",
        "marked",
        "bookkeeping",
        "unknown",
    ]
    is_there: bool
    instant: str | None
    """That has written it, or was to."""
    position: int | None
    """Of the log entry that decided its fate."""
    rows: int | None
    bytes: int | None
    """As the log has them; null for a file that it does not name."""
    rewritten_bytes: int | None
    """Written once more to come to it; likewise."""
    made_of: list[str]
    """The small file that it was made of; several where the log does not show which of them."""
    filled_into: list[str]
    """The file that its rows went into, since it was small; likewise."""
    why: str
    next: str
    command: str | None
    """What does that now; null where nothing is to be done."""
    until: str | None
    """ISO 8601: until when it stays at least, by the store's clock."""


async def explain(table: "Table", *, file: str) -> ExplainDocument:
    found = await table.explain(_as_seen_from_here(table.url, file))
    return {
        "url": table.url,
        "path": found.path,
        "fate": found.fate,
        "is_there": found.is_there,
        "instant": found.instant,
        "position": found.position,
        "rows": found.rows,
        "bytes": found.bytes,
        "rewritten_bytes": found.rewritten_bytes,
        "made_of": list(found.made_of),
        "filled_into": list(found.filled_into),
        "why": found.why,
        "next": found.next,
        "command": found.command,
        "until": None if found.until is None else found.until.isoformat(),
    }


def _as_seen_from_here(url: str, file: str) -> str:
    """Return the file that a shell's path means, relative to its working directory, if there is one."""
    if url.startswith("file:") and Path(file).is_file():
        return str(Path(file).absolute())
    return file
