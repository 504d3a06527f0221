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
    "data", "staged", "segment", "marker type", "reservation", "number", "heartbeat", "log", "kept", "unknown"
]

_PATTERNS: tuple[tuple[Kind, str], ...] = (
    ("data", r"month=\d+/day=\d+/[^/]+\.parquet"),
    ("staged", r"\.hoodie/\.temp/\d{17}/staged[^/]*/[^/]+"),
    ("segment", r"\.hoodie/\.temp/\d{17}/MARKERS\d+"),
    ("marker type", r"\.hoodie/\.temp/\d{17}/(MARKERS\.type|SERVER\d+)"),
    ("reservation", r"\.hoodie/\.tallymark/open/\d{17}"),
    ("number", r"\.hoodie/\.tallymark/begun/\d+"),
    ("heartbeat", r"\.hoodie/\.tallymark/beat/[^/]+"),
    ("log", r"\.hoodie/\.tallymark/log/\d+"),
    ("kept", r"\.hoodie/hoodie\.properties|month=\d+/day=\d+/\.hoodie_partition_metadata"),
    ("kept", r"\.hoodie/\d{17}\.[a-z.]+|\.hoodie/\.tallymark/tmp/[^/]+"),
)

NOT_AT_REST: tuple[Kind, ...] = ("staged", "segment", "marker type", "reservation", "number", "heartbeat", "unknown")
"""Files that exist only while a write runs, or never."""


@dataclass(frozen=True)
class Storage:
    """Every file below the folder at one moment, and the files that they refer to."""

    folder: Path
    files: dict[str, os.stat_result]
    """By path relative to the folder."""
    markers: frozenset[str]
    """Paths of data files that marker segments named."""
    committed: frozenset[str]
    """Paths of data files that the Hudi timeline named as live."""

    @classmethod
    def read(cls, folder: Path) -> "Storage":
        files = dict(_files(folder))
        return cls(folder, files, frozenset(_marked(folder, files)), _committed(folder, files))

    @cached_property
    def _kinds(self) -> dict[str, Kind]:
        return {path: _kind(path) for path in sorted(self.files)}

    def of_kind(self, *kinds: Kind) -> list[str]:
        return [path for path, kind in self._kinds.items() if kind in kinds]

    @cached_property
    def data(self) -> frozenset[str]:
        """Paths of the data files, committed or not: what a reader of a plain directory reads."""
        return frozenset(self.of_kind("data"))

    @property
    def uncommitted(self) -> frozenset[str]:
        return self.data - self.committed

    def in_month(self, month: int) -> frozenset[str]:
        return frozenset(path for path in self.data if path.startswith(f"month={month}/"))

    def rows(self, paths: Iterable[str]) -> int:
        """Return the rows of Parquet files, by their footers."""
        return sum(pq.read_metadata(self.folder / path).num_rows for path in paths)

    def unlike_a_table_at_rest(self) -> list[str]:
        """Return the files that a table at rest does not contain, and the committed files that are missing."""
        missing = [f"missing: {path}" for path in sorted(self.committed - self.data)]
        return sorted(self.uncommitted) + self.of_kind(*NOT_AT_REST) + missing

    def fingerprints(self, paths: Iterable[str]) -> dict[str, tuple[str, int, int]]:
        """Return SHA-256 of the bytes, time of change and inode of each file that exists."""
        return {
            path: (
                hashlib.sha256((self.folder / path).read_bytes()).hexdigest(),
                self.files[path].st_mtime_ns,
                self.files[path].st_ino,
            )
            for path in self.data.intersection(paths)
        }


def instant_of(path: str) -> str:
    """Return the instant in the name of a data file."""
    return path.rpartition("_")[2].removesuffix(".parquet")


def attempt_of(path: str) -> str:
    """Return ``<task>-<stage>-<attempt>`` in the name of a data file, which is unique per attempt of a task."""
    return path.split("_")[-2]


def _kind(path: str) -> Kind:
    return next((kind for kind, pattern in _PATTERNS if re.fullmatch(pattern, path)), "unknown")


def _files(folder: Path) -> Iterator[tuple[str, os.stat_result]]:
    for directory, _, names in os.walk(folder):
        for path in (Path(directory, name) for name in names):
            with suppress(FileNotFoundError):  # deleted since it was listed
                yield path.relative_to(folder).as_posix(), path.stat()


def _marked(folder: Path, files: Iterable[str]) -> Iterator[str]:
    for path in files:
        if _kind(path) == "segment":
            with suppress(FileNotFoundError):
                for line in (folder / path).read_text("utf-8").splitlines():
                    if ".marker." in line:  # the first one is the checksum of the others
                        yield line.rpartition(".marker.")[0]


def _committed(folder: Path, files: Iterable[str]) -> frozenset[str]:
    """Return the live files, from the JSON of the timeline's completed instants, in their order."""
    live: dict[str, str] = {}
    for path in sorted(files):
        if re.fullmatch(r"\.hoodie/\d{17}\.(commit|replacecommit)", path):
            commit = json.loads((folder / path).read_text("utf-8"))
            for replaced in commit.get("partitionToReplaceFileIds", {}).values():
                for file_id in replaced:
                    live.pop(file_id, None)
            for written in commit["partitionToWriteStats"].values():
                live.update((file["fileId"], file["path"]) for file in written)
    return frozenset(live.values())
