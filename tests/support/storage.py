"""What lies on a local disk, found by walking it, and whether that is what should lie there.

Nothing here goes through the library: not its listing, its log reader or its snapshot.
"""

import os
import re
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from tests.table_invariants import committed_files, hudi_files

_KEPT = re.compile(
    r"(?:.+/)?\.hoodie_partition_metadata"
    r"|\.hoodie/hoodie\.properties"
    r"|\.hoodie/\d{17}\.(?:inflight|(?:replace)?commit(?:\.requested|\.inflight)?)"
    r"|\.hoodie/\.tallymark/begun/\d{20}"  # of releases that numbered their writers
    r"|\.hoodie/\.tallymark/(?:log/\d{20}|body/\d{17}/[0-9a-f]{32})"
    r"|\.hoodie/\.tallymark/checkpoint/(?:latest|\d{20}-[0-9a-f]{32}(?:\.\d+)?)"
)
"""What a table at rest consists of besides data files."""

_SCRATCH = re.compile(r"\.hoodie/\.tallymark/tmp/[0-9a-f]{24}")
"""What a process that was killed in the middle of a put leaves for an hour. Nobody reads it."""


@dataclass(frozen=True, slots=True)
class Stored:
    """A file as it lies on disk; equal if neither its bytes nor its time of change are different."""

    digest: str
    modified_ns: int


def files(path: Path) -> set[str]:
    """Every file below a directory, hidden ones too, as relative paths."""
    return {(Path(folder) / name).relative_to(path).as_posix() for folder, _, names in os.walk(path) for name in names}


def objects(path: Path) -> dict[str, bytes]:
    """Every file below a directory with its bytes: storage as ``tests.table_invariants`` judges it."""
    return {name: (path / name).read_bytes() for name in files(path)}


def tree(path: Path) -> dict[str, Stored | None]:
    """Every file and directory with what tells whether it was touched; None for a directory."""
    folders = {Path(folder).relative_to(path).as_posix(): None for folder, _, _ in os.walk(path)}
    return {**folders, **{name: stored(path / name) for name in files(path)}}


def stored(file: Path) -> Stored:
    return Stored(sha256(file.read_bytes()).hexdigest(), file.stat().st_mtime_ns)


def data_files(path: Path) -> set[str]:
    """Every Parquet file, wherever it lies."""
    return {name for name in files(path) if name.endswith(".parquet")}


def exactly_the_committed_files(path: Path, *, scratch: bool = False) -> set[str]:
    """Assert that a table is at rest: its disk holds the committed data files and no others, and no bookkeeping of
    any writer, but for scratch files where that is said. Returns the data files."""
    stored = objects(path)
    committed = committed_files(stored)
    assert hudi_files(stored) == committed, "readers of the Hudi format find other files"
    assert data_files(path) == committed
    others = {name for name in files(path) - committed if not _KEPT.fullmatch(name)}
    left = {name for name in others if not (scratch and _SCRATCH.fullmatch(name))}
    assert not left, f"left behind: {sorted(left)}"
    assert not (path / ".hoodie/.temp").exists()
    return committed
