"""Objects that an archive has deleted, kept so that a table can be judged by its whole log."""

import re
from collections.abc import Mapping

_ARCHIVED = re.compile(r"\.hoodie/(\.tallymark/(log|body)/.*|\d{17}\..*)")


def is_archivable(path: str) -> bool:
    """Return whether an archive may delete the object: an entry of the log, a body, or a file of the Hudi timeline."""
    return _ARCHIVED.fullmatch(path) is not None


def whole(stored: Mapping[str, bytes], archived: Mapping[str, bytes]) -> dict[str, bytes]:
    """Return all that is stored, with the whole log and its projection. A body counts if an entry refers to it."""
    logged = b"".join(data for path, data in {**stored, **archived}.items() if "/log/" in path)
    kept = (path for path in archived if "/body/" not in path or path.encode() in logged)
    return {**stored, **{path: archived[path] for path in kept}}
