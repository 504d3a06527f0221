"""A reader of tables, written from docs/format.md: it imports nothing of the library, and trusts nothing that it reads.

python tests/stores/second_reader.py FOLDER
"""

import json
import re
import struct
import sys
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

import msgpack
import pyarrow as pa

Objects = Mapping[str, bytes]
"""All objects of a table by path."""

HUDI = ".hoodie/"
OURS = ".hoodie/.tallymark/"
LOG = f"{OURS}log/"
CHECKPOINTS = f"{OURS}checkpoint/"
FLOOR = "19700101000000000"

FEATURES = frozenset({"changes", "groups", "producers"})
"""Those that this reader knows."""

FIXED = {
    "hoodie.table.version": "6",
    "hoodie.timeline.layout.version": "1",
    "hoodie.table.type": "COPY_ON_WRITE",
    "hoodie.table.base.file.format": "PARQUET",
    "hoodie.table.timeline.timezone": "UTC",
    "hoodie.datasource.write.hive_style_partitioning": "true",
    "hoodie.datasource.write.partitionpath.urlencode": "true",
    "hoodie.datasource.write.drop.partition.columns": "false",
    "hoodie.populate.meta.fields": "false",
}
KINDS = ("commit", "rollback", "clean")
OPERATIONS = ("append", "overwrite", "upsert", "delete", "rollback", "clean", "group")
ROW = struct.Struct("<QQQQIIH")
MANIFEST = re.compile(rf"{re.escape(CHECKPOINTS)}\d{{20}}-[0-9a-f]{{32}}")
COMPLETED = re.compile(r"\.hoodie/(\d{17})\.(commit|replacecommit)")
DATA_FILE = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}-0_\d+-\d+-\d+_(\d{17})\.parquet")


class RefusedError(Exception):
    """The table needs a newer reader."""


class DamagedError(Exception):
    """An object is not what the format says; the message names it."""


class LostError(DamagedError):
    """Entries of the log are gone."""


@dataclass(frozen=True, slots=True)
class File:
    partition: str
    name: str
    rows: int
    bytes: int
    plain_bytes: int = 0
    rewritten_bytes: int = 0

    @property
    def path(self) -> str:
        return f"{self.partition}/{self.name}" if self.partition else self.name


@dataclass(slots=True)
class Life:
    file: File
    added_at: int
    removed_at: int = 0

    def holds(self, position: int) -> bool:
        return self.added_at <= position and not 0 < self.removed_at <= position


@dataclass(slots=True, kw_only=True)
class Table:
    """The table at the head of its log, or at a checkpoint."""

    properties: dict[str, str]
    id: str
    hash: bytes
    position: int = 0
    floor: int = 0
    """The oldest position of which the files are known."""
    instants: dict[str, tuple[int, str]] = field(default_factory=dict)
    """Position and kind of the entry that decided each."""
    txns: dict[str, int] = field(default_factory=dict)
    txn_floors: dict[str, str] = field(default_factory=dict)
    start: int = 0
    """The position up to which the log is archived."""
    instant_floor: str = FLOOR
    """Earlier instants are over."""
    horizon: int = 0
    time: int = 0
    writer_features: frozenset[str] = frozenset()
    problems: list[str] = field(default_factory=list)
    lives: dict[str, Life] = field(default_factory=dict)

    def files(self, position: int | None = None) -> dict[str, File]:
        """The live files by path, at the head or at an earlier position."""
        position = self.position if position is None else position
        assert self.floor <= position <= self.position, f"position {position} of {self.floor} to {self.position}"
        return {path: life.file for path, life in self.lives.items() if life.holds(position)}

    def is_over(self, instant: str) -> bool:
        return instant in self.instants or instant < self.instant_floor

    def apply(self, entry: Mapping[str, Any], path: str) -> None:
        previous, self.position = self.hash, self.position + 1
        self.hash = next_hash(previous, self.position, entry)
        if entry.get("table", "") != self.id or (self.id and entry["previous"] != previous):
            return  # another log's
        self.writer_features |= {*entry.get("writer_features", ())}
        if entry.get("time", 0) < self.time:
            self.problems.append(f"{path}: its time is before that of the entry before it")
        self.time = max(self.time, entry.get("time", 0))
        for member in entry["group"] if entry["kind"] == "group" else (entry,):
            if not self.is_over(member["instant"]):
                self._decide(member, path)

    def _decide(self, entry: Mapping[str, Any], path: str) -> None:
        self.instants[entry["instant"]] = (self.position, entry["kind"])
        if entry["kind"] == "clean":
            self.horizon = max(self.horizon, entry["horizon"])
        if entry["kind"] == "commit":
            self._commit(entry, path)

    def _commit(self, entry: Mapping[str, Any], path: str) -> None:
        if entry.get("txn") is not None:
            self.txns.setdefault(entry["txn"], self.position)
        for file in map(file_of, entry["removed"]):
            life = self.lives.get(file.path)
            if life is None or life.removed_at:
                raise DamagedError(f"{path} removes {file.path}, which is not there")
            life.removed_at = self.position
        for file in map(file_of, entry["added"]):
            if file.path in self.lives:
                raise DamagedError(f"{path} adds {file.path}, which was there before")
            self.lives[file.path] = Life(file, self.position)


def read_table(objects: Objects | Path, *, from_checkpoint: bool = True) -> Table:
    """Read a table from its newest usable checkpoint on, or its whole log.

    Raises:
        RefusedError: it is of another format, or needs a feature that this reader does not know.
        DamagedError: an object is damaged or missing.
    """
    objects = objects_of(objects) if isinstance(objects, Path) else objects
    properties = read_properties(objects)
    id_ = properties["tallymark.id"] if properties["tallymark.format"] != "1" else ""
    table = Table(properties=properties, id=id_, hash=sha256(id_.encode()).digest())
    if from_checkpoint:
        start_at_checkpoint(objects, table)
    follow_log(objects, table)
    check_nothing_is_lost(objects, table)
    table.problems += [*problems_of_files(objects, table), *problems_of_timeline(objects, table)]
    return table


def objects_of(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def read_properties(objects: Objects) -> dict[str, str]:
    path = ".hoodie/hoodie.properties"
    found = dict(properties_of(get(objects, path).decode("latin-1")))
    for key, needed in FIXED.items():
        if found.get(key) != needed:
            raise RefusedError(f"{key}={found.get(key)}")
    if found.get("tallymark.format") not in ("1", "2"):
        raise RefusedError(f"tallymark.format={found.get('tallymark.format')}")
    if found.get("tallymark.readers") not in ("directory", "table"):
        raise RefusedError(f"tallymark.readers={found.get('tallymark.readers')}")
    check_features(filter(None, found.get("tallymark.reader_features", "").split(",")), path)
    name = f"{found.get('hoodie.database.name', '')}.{found.get('hoodie.table.name')}"
    if found.get("hoodie.table.checksum") != str(zlib.crc32(name.encode())):
        raise DamagedError(f"{path}: its checksum does not fit")
    own = {key for key in found if key.startswith("tallymark.")} - {"tallymark.checksum"}
    lines = "".join(f"{key}={found.get(key, '')}\n" for key in sorted(own | {"hoodie.table.partition.fields"}))
    if found.get("tallymark.checksum", checksum := f"{zlib.crc32(lines.encode()):08x}") != checksum:
        raise DamagedError(f"{path}: its own checksum does not fit")
    return found


def properties_of(text: str) -> Iterator[tuple[str, str]]:
    """Keys and values as ``java.util.Properties`` reads them."""
    joined = re.sub(r"(?<!\\)((?:\\\\)*)\\(?:\r\n|\r|\n)[ \t\f]*", r"\1", text)
    for line in re.split(r"\r\n|\r|\n", joined):
        found = re.fullmatch(r"[ \t\f]*((?:[^\\=: \t\f]|\\.)+)[ \t\f]*[=:]?[ \t\f]*(.*)", line)
        if found and found[1][0] not in "#!":
            yield unescaped(found[1]), unescaped(found[2])


def unescaped(text: str) -> str:
    def character(found: re.Match[str]) -> str:
        if found[1]:
            return chr(int(found[1], 16))
        return {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}.get(found[2], found[2])

    units = re.sub(r"\\(?:u([0-9a-fA-F]{4})|(.))", character, text)
    return units.encode("utf-16", "surrogatepass").decode("utf-16")


def check_features(names: Any, path: str) -> None:
    if unknown := sorted({*names} - FEATURES):
        raise RefusedError(f"{path} needs {', '.join(unknown)}")


def start_at_checkpoint(objects: Objects, table: Table) -> None:
    """Bring the table to the position of the first checkpoint that can be read. The others are problems."""
    latest = f"{CHECKPOINTS}latest"
    listed = sorted(filter(MANIFEST.fullmatch, objects), reverse=True)
    named: list[str] = []
    try:
        if latest in objects:
            named = [CHECKPOINTS + name for name in opened(objects, latest)["manifests"]]
    except (DamagedError, RefusedError) as error:
        table.problems.append(str(error))
    if named and listed and listed[0] > named[0] and not objects.keys() >= {*named}:
        named = []  # the pointer is late
    for path in [*named, *(path for path in listed if path not in named)]:
        try:
            take_manifest(objects, table, path)
        except LostError:
            raise
        except (DamagedError, RefusedError, KeyError, ValueError, struct.error) as error:
            table.problems.append(f"{path}: {error}")
        else:
            return


def take_manifest(objects: Objects, table: Table, path: str) -> None:
    manifest = opened(objects, path)
    position = manifest["position"]
    if manifest.get("id", "") != table.id:
        raise DamagedError("it is of another table")
    entry = read_entry(objects, position) if log_path(position) in objects else None
    if entry is None or next_hash(manifest["hash_before"], position, entry) != manifest["hash"]:
        raise LostError(f"{path} does not fit the log: entries are lost")
    check_features(manifest.get("reader_features", ()), path)
    lives = {}
    for part in manifest["parts"]:
        for partition, block in opened(objects, CHECKPOINTS + part[2])["blocks"].items():
            lives.update({life.file.path: life for life in rows_of(block, partition)})
    states = zip(manifest["partitions"], manifest["first"], manifest["live"], manifest["changed_at"], strict=True)
    for partition, first, live, changed_at in states:
        here = [life for life in lives.values() if life.file.partition == partition]
        moves = [first, *(move for life in here for move in (life.added_at, life.removed_at))]
        if sum(life.removed_at == 0 for life in here) != live or max(moves) > changed_at:
            raise DamagedError(f"its rows of {partition!r} are not what it says of them")
    table.lives, table.position, table.hash = lives, position, manifest["hash"]
    table.floor, table.horizon, table.txns = manifest["floor"], manifest["horizon"], dict(manifest["txns"])
    table.start, table.instant_floor = manifest.get("start", 0), manifest.get("instant_floor", FLOOR)
    table.txn_floors, table.time = manifest.get("txn_floors", {}), manifest.get("time", 0)
    table.writer_features |= {*manifest.get("writer_features", ())}
    voids = {*manifest["voids"]}
    groups = dict(manifest.get("groups", ()))
    numbers = range(table.start + 1, position + 1)
    counting = [each for each in numbers if each not in voids for _ in range(groups.get(each, 1))]
    later = zip(counting, manifest["instants"], manifest["kinds"], strict=True)
    for each, instant, kind in (*manifest.get("early", ()), *later):
        table.instants[f"{instant:017d}"] = (each, KINDS[kind % 4])


def rows_of(block: bytes, partition: str) -> Iterator[Life]:
    at = 0
    while at < len(block):
        *counts, added_at, removed_at, length = ROW.unpack_from(block, at)
        tail = block[at + ROW.size : at + ROW.size + length]
        if len(tail) < length:
            raise DamagedError(f"a row of {partition!r} is cut off")
        at += ROW.size + length
        name, _, _ = tail.partition(b"\0")
        yield Life(File(partition, name.decode(), *counts), added_at, removed_at)


def follow_log(objects: Objects, table: Table) -> None:
    numbers = sorted(int(path.removeprefix(LOG)) for path in objects if path.startswith(LOG))
    if table.position == 0 and numbers and numbers[0] > 1:
        raise DamagedError(f"the log starts at {numbers[0]}, and no checkpoint can be used")
    while table.position + 1 in numbers:
        table.apply(read_entry(objects, table.position + 1), log_path(table.position + 1))
    for number in numbers:
        if number > table.position and read_entry(objects, number).get("table", "") == table.id:
            raise DamagedError(f"{log_path(table.position + 1)} is gone, and {log_path(number)} is there")


def read_entry(objects: Objects, number: int) -> dict[str, Any]:
    """Return the fields of an entry, with those of its body."""
    entry = entry_fields(objects, log_path(number))
    if "body" not in entry:
        return entry
    links: dict[str, Any] = {name: entry[name] for name in ("table", "previous", "time") if name in entry}
    return {**entry_fields(objects, entry["body"]), **links}


def entry_fields(objects: Objects, path: str) -> dict[str, Any]:
    data = get(objects, path)
    if data[:4] == b"TMLE":
        if len(data) < 8 or zlib.crc32(data[8:]) != int.from_bytes(data[4:8], "little"):
            raise DamagedError(f"{path}: its CRC does not fit")
        data = data[8:]
    entry = unpacked(data, path)
    if entry.get("format") != 1:
        raise RefusedError(f"{path} is of format {entry.get('format')}")
    check_features(entry.get("reader_features", ()), path)
    for name, known in (("kind", (*KINDS, "group")), ("operation", OPERATIONS)):
        if "body" not in entry and entry.get(name) not in known:
            raise RefusedError(f"{path} is of {name} {entry.get(name)}")
    return entry


def file_of(fields: Sequence[Any]) -> File:
    return File(*fields[:6])


def next_hash(before: bytes, position: int, entry: Mapping[str, Any]) -> bytes:
    link: bytes = msgpack.packb([position, entry["instant"], entry["kind"], entry["nonce"]])
    return sha256(before + link).digest()


def opened(objects: Objects, path: str) -> dict[str, Any]:
    """Return the map in an object of a checkpoint."""
    data = get(objects, path)
    if data[:4] != b"TMCP" or len(data) < 18:
        raise DamagedError(f"{path} is not of a checkpoint")
    version, crc, size = struct.unpack_from("<HIQ", data, 4)
    if version != 1:
        raise RefusedError(f"{path} is of format {version}")
    if zlib.crc32(data[10:], version) != crc:
        raise DamagedError(f"{path}: its CRC does not fit")
    return unpacked(pa.Codec("zstd").decompress(data[18:], size, asbytes=True), path)


def unpacked(data: bytes, path: str) -> dict[str, Any]:
    try:
        found = msgpack.unpackb(data, raw=False, strict_map_key=True)
    except (ValueError, msgpack.UnpackException) as error:
        raise DamagedError(f"{path}: {error!r}") from error
    if not isinstance(found, dict):
        raise DamagedError(f"{path} is not a map")
    return found


def problems_of_files(objects: Objects, table: Table) -> Iterator[str]:
    """Yield what is wrong with data files: none of a table at rest, or while its writers live."""
    kept = table.files()
    if table.properties["tallymark.readers"] == "table":
        kept |= {path: life.file for path, life in table.lives.items() if life.removed_at > table.horizon}
    for path, file in kept.items():
        data = objects.get(path)
        if data is None:
            yield f"{path} is committed, and gone"
        elif len(data) != file.bytes or not data.startswith(b"PAR1") or not data.endswith(b"PAR1"):
            yield f"{path} is not the file that was committed"
    fences = {path for each in objects if each.startswith(f"{OURS}fence/") for path in msgpack.unpackb(objects[each])}
    open_ = {path.rpartition("/")[2] for path in objects if path.startswith(f"{OURS}open/")}
    deletes = bool(open_ & table.instants.keys())  # a commit or clean whose writer has not deleted all yet
    for path in objects.keys() - kept.keys() - fences:
        found = None if path.startswith(HUDI) else DATA_FILE.fullmatch(path.rpartition("/")[2])
        if found and found[2] not in open_ and not (deletes and table.is_over(found[2])):
            yield f"{path} is not committed, and no open instant will delete it"


def check_nothing_is_lost(objects: Objects, table: Table) -> None:
    for instant, path in completed(objects).items():
        shown = json.loads(objects[path])["extraMetadata"].get("tallymark.table")
        if not table.is_over(instant) and (shown == table.id != "" or (shown is None and not table.position)):
            raise LostError(f"{path} is there, and the log has no such commit")


def completed(objects: Objects) -> dict[str, str]:
    """The completed commits of the Hudi timeline, without the floor."""
    found = {match[1]: path for path in sorted(objects) if (match := COMPLETED.fullmatch(path))}
    return {instant: path for instant, path in found.items() if instant != FLOOR}


def problems_of_timeline(objects: Objects, table: Table) -> Iterator[str]:
    """Yield what readers of the Hudi format would see otherwise: the timeline is a run of the log's commits."""
    shown_at = completed(objects)
    commits = [instant for instant, (_, kind) in table.instants.items() if kind == "commit"]
    if f"{HUDI}{FLOOR}.commit" not in objects:  # archived: it starts with a later commit, and none is before
        commits = [instant for instant in commits if instant >= min(shown_at, default=FLOOR)]
    visible = [instant in shown_at for instant in commits]
    if visible != sorted(visible, reverse=True):
        yield "the Hudi timeline lacks a commit before its last"
    for instant in filter(shown_at.__contains__, commits):
        position = table.instants[instant][0]
        if position <= table.floor:
            continue
        stats = json.loads(objects[shown_at[instant]])["partitionToWriteStats"].values()
        shown = {stat["path"]: (stat["numWrites"], stat["fileSizeInBytes"]) for each in stats for stat in each}
        lives = [life for life in table.lives.values() if life.added_at == position]
        if shown != {life.file.path: (life.file.rows, life.file.bytes) for life in lives}:
            yield f"{shown_at[instant]} has other files than the log"


def get(objects: Objects, path: str) -> bytes:
    if path not in objects:
        raise DamagedError(f"{path} is missing")
    return objects[path]


def log_path(number: int) -> str:
    return f"{LOG}{number:020d}"


def main(folder: str) -> None:
    table = read_table(Path(folder))
    print(f"position {table.position}, horizon {table.horizon}, {len(table.instants)} instants, txns {table.txns}")
    for path, file in sorted(table.files().items()):
        print(f"{path}  {file.rows} rows, {file.bytes} bytes")
    for problem in table.problems:
        print(f"problem: {problem}")


if __name__ == "__main__":
    main(sys.argv[1])
