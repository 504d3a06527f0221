"""What lies in the folder of a table, beside what the table's readers see of it."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pyarrow as pa
import pyarrow.dataset as ds

TEMPORARY = frozenset({"_temporary", ".temp", "open", "beat"})
"""Folders of things that are needed by a running job only."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Remains:
    """Of a table at one moment."""

    rows: int
    """That the side's own readers see."""
    directory_rows: int | None
    """That any reader of Parquet directories sees; None: it fails."""
    files: int
    """Data files, whole or in part, that the side's readers read no row of."""
    bytes: int
    """Of those files."""
    temporary: int
    """Other files in folders that only a running job needs."""


def remains(folder: Path, rows: int, read: Iterable[str]) -> Remains:
    """``rows`` are those that readers see, and ``read`` the URLs of the files that these are in."""
    known = {Path(unquote(urlsplit(url).path)).resolve() for url in read}
    found = [path for path in folder.rglob("*") if path.is_file()]
    data = [path for path in found if ".parquet" in path.name and path.suffix not in (".crc", ".CREATE")]
    unread = [path for path in data if path.resolve() not in known]
    others = set(found) - set(data)
    return Remains(
        rows=rows,
        directory_rows=_directory_rows(folder),
        files=len(unread),
        bytes=sum(path.stat().st_size for path in unread),
        temporary=sum(bool(TEMPORARY & set(path.relative_to(folder).parts[:-1])) for path in others),
    )


def _directory_rows(folder: Path) -> int | None:
    """Of all Parquet files whose path has no part that begins with ``_`` or ``.``, as Hive and Spark have it."""
    paths = [str(path) for path in folder.rglob("*.parquet") if not _is_hidden(path.relative_to(folder))]
    try:
        return ds.dataset(paths, format="parquet").count_rows() if paths else 0
    except (pa.ArrowInvalid, OSError):
        return None


def _is_hidden(path: Path) -> bool:
    return any(part.startswith(("_", ".")) for part in path.parts)
