"""A Delta log of many files, and the library ``deltalake`` that reads it (``pip install deltalake``)."""

import json
from collections.abc import Iterable, Iterator, Sequence
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

from tallymark.engine.timeline.entry import DataFile

_LOG = "_delta_log"

_TIME_MS = 1_767_225_600_000


def write_delta_log(folder: Path, commits: Iterable[Sequence[DataFile]], *, partition_column: str) -> None:
    """A commit each, and a checkpoint of the last, as a writer leaves one from time to time."""
    from deltalake import DeltaTable

    (folder / _LOG).mkdir(parents=True)
    for number, files in enumerate(commits):
        _write(folder, number, [*(_opening(partition_column) if number == 0 else ()), *map(_added, files)])
    DeltaTable(str(folder)).create_checkpoint()


def append_delta_commit(folder: Path, files: Iterable[DataFile]) -> None:
    """One more."""
    newest = max(int(path.stem) for path in (folder / _LOG).glob("*.json"))
    _write(folder, newest + 1, map(_added, files))


def _write(folder: Path, number: int, actions: Iterable[dict[str, object]]) -> None:
    (folder / _LOG / f"{number:020d}.json").write_text("\n".join(map(json.dumps, actions)) + "\n")


def has_delta() -> bool:
    return find_spec("deltalake") is not None


def release() -> str:
    return version("deltalake")


class DeltaLog:
    """The table as of when it was opened or updated: all of its log is in memory from then on."""

    def __init__(self, folder: Path) -> None:
        from deltalake import DeltaTable

        self._table = DeltaTable(str(folder))

    def files(self, partition: str) -> list[str]:
        column, _, value = partition.partition("=")
        found: list[str] = self._table.file_uris([(column, "=", value)])
        return found

    def sync(self) -> None:
        """Read what was committed since."""
        self._table.update_incremental()


def _opening(column: str) -> Iterator[dict[str, object]]:
    fields = [
        {"name": name, "type": kind, "nullable": True, "metadata": {}}
        for name, kind in (("value", "long"), (column, "string"))
    ]
    yield {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}}
    yield {
        "metaData": {
            "id": "00000000-0000-0000-0000-000000000000",
            "format": {"provider": "parquet", "options": {}},
            "schemaString": json.dumps({"type": "struct", "fields": fields}),
            "partitionColumns": [column],
            "configuration": {},
            "createdTime": _TIME_MS,
        }
    }


def _added(file: DataFile) -> dict[str, object]:
    column, _, value = file.partition.partition("=")
    return {
        "add": {
            "path": file.path,
            "partitionValues": {column: value},
            "size": file.bytes,
            "modificationTime": _TIME_MS,
            "dataChange": True,
            "stats": json.dumps({"numRecords": file.rows}),
        }
    }
