"""Content of the table's folder, listed with the operating system's own calls, without the library."""

import hashlib
import json
import os
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal

import pyarrow.parquet as pq

Kind = Literal[
    "data", "staged", "segment", "marker type", "reservation", "beat", "log", "timeline", "table", "scratch", "unknown"
]

_PATTERNS: tuple[tuple[Kind, str], ...] = (
    ("data", r"month=\d+/day=\d+/[^/]+\.parquet"),
    ("table", r"\.hoodie/hoodie\.properties|month=\d+/day=\d+/\.hoodie_partition_metadata"),
    ("staged", r"\.hoodie/\.temp/\d{17}/staged[^/]*/[^/]+"),
    ("segment", r"\.hoodie/\.temp/\d{17}/MARKERS\d+"),
    ("marker type", r"\.hoodie/\.temp/\d{17}/(MARKERS\.type|SERVER\d+)"),
    ("reservation", r"\.hoodie/\.tallymark/open/\d{17}"),
    ("beat", r"\.hoodie/\.tallymark/beat/[^/]+"),
    ("log", r"\.hoodie/\.tallymark/log/\d+"),
    ("timeline", r"\.hoodie/\d{17}\.[a-z.]+"),
    ("scratch", r"\.hoodie/\.tallymark/tmp/[^/]+"),
)


@dataclass(frozen=True, slots=True)
class File:
    """A file as the file system shows it."""

    path: str
    """Path relative to the table's folder."""
    size: int
    modified_ns: int
    inode: int


@dataclass(frozen=True)
class Storage:
    """Every file below the folder at one moment, and the files that they refer to."""

    folder: Path
    files: dict[str, File]
    markers: tuple[str, ...]
    """Paths of data files that marker segments named."""
    committed: frozenset[str]
    """Paths of data files that the Hudi timeline named as live."""

    @classmethod
    def look(cls, folder: Path) -> "Storage":
        files = {file.path: file for file in _walk(folder)}
        return cls(folder, files, tuple(_markers(folder, files)), _committed(folder, files))

    def of_kind(self, kind: Kind) -> list[File]:
        return self._by_kind.get(kind, [])

    @cached_property
    def _by_kind(self) -> dict[Kind, list[File]]:
        found: dict[Kind, list[File]] = {}
        for path in sorted(self.files):
            found.setdefault(_kind(path), []).append(self.files[path])
        return found

    @cached_property
    def data(self) -> frozenset[str]:
        """Paths of the data files that every reader of a plain directory sees."""
        return frozenset(file.path for file in self.of_kind("data"))

    @property
    def uncommitted(self) -> frozenset[str]:
        return self.data - self.committed

    def remains(self) -> list[str]:
        """Files that a table at rest does not contain, and committed files that are missing; empty when all is well."""
        kinds: tuple[Kind, ...] = ("staged", "segment", "marker type", "reservation", "beat", "unknown")
        extra = [file.path for kind in kinds for file in self.of_kind(kind)]
        missing = [f"missing: {path}" for path in sorted(self.committed - self.data)]
        return sorted(self.uncommitted) + extra + missing


def footer_rows(folder: Path, paths: Iterable[str]) -> int:
    """Return the rows of Parquet files, by their footers."""
    return sum(pq.read_metadata(folder / path).num_rows for path in paths)


def fingerprints(storage: Storage, paths: Iterable[str]) -> dict[str, tuple[str, int, int]]:
    """Return SHA-256 of the bytes, time of change and inode of each file."""
    found = ((path, storage.files[path]) for path in paths)
    return {
        path: (hashlib.sha256((storage.folder / path).read_bytes()).hexdigest(), file.modified_ns, file.inode)
        for path, file in found
    }


def instant_of(path: str) -> str:
    """Return the instant in the name of a data file."""
    return path.rpartition("_")[2].removesuffix(".parquet")


def attempt_of(path: str) -> str:
    """Return ``<task>-<stage>-<attempt>`` in the name of a data file, which is unique per attempt of a task."""
    return path.split("_")[-2]


def _markers(folder: Path, files: Iterable[str]) -> Iterator[str]:
    for path in files:
        if path.startswith(".hoodie/.temp/") and _kind(path) == "segment":
            for line in _text(folder / path).splitlines():
                yield line.rpartition(".marker.")[0]


def _committed(folder: Path, files: Iterable[str]) -> frozenset[str]:
    """Return the live files, from the JSON of the timeline's completed instants, in their order."""
    live: dict[str, str] = {}
    for path in sorted(files):
        if re.fullmatch(r"\.hoodie/\d{17}\.(commit|replacecommit)", path):
            commit = json.loads(_text(folder / path))
            for replaced in commit.get("partitionToReplaceFileIds", {}).values():
                for file_id in replaced:
                    live.pop(file_id, None)
            for written in commit["partitionToWriteStats"].values():
                live.update((file["fileId"], file["path"]) for file in written)
    return frozenset(live.values())


def _text(path: Path) -> str:
    try:
        return path.read_text("utf-8")
    except FileNotFoundError:
        return ""  # gone since it was listed; timeline files never go


def _walk(folder: Path) -> Iterator[File]:
    pending = [str(folder)]
    while pending:
        with (
            suppress(FileNotFoundError),
            os.scandir(pending.pop()) as found,
        ):  # what is gone since it was listed is gone
            for item in found:
                if item.is_dir(follow_symlinks=False):
                    pending.append(item.path)
                    continue
                with suppress(FileNotFoundError):
                    facts = item.stat(follow_symlinks=False)
                    path = Path(item.path).relative_to(folder).as_posix()
                    yield File(path, facts.st_size, facts.st_mtime_ns, facts.st_ino)


def _kind(path: str) -> Kind:
    return next((kind for kind, pattern in _PATTERNS if re.fullmatch(pattern, path)), "unknown")
