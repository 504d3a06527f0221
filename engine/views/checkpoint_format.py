"""Format of a checkpoint: the table's files at one position of its log, in a few immutable objects. Sans-I/O.

    .hoodie/.tallymark/checkpoint/
        <position>-<nonce>          a manifest: all that a reader of the log needs at once
        <position>-<nonce>.<k>      its parts: the rows of a run of partitions each, read at the first query for one
        latest                      the pointer: the names of the newest manifest and the one before; put last

A manifest also names parts of earlier ones, where no partition has changed. Each object is sealed, so that a reader
sees whether it is whole:

    "TMCP", format                  4 + 2 bytes
    CRC-32 of format and rest       4 bytes
    size before compression         8 bytes
    zstd                            the rest

all little-endian. The CRC finds damage by accident, such as a torn copy or a bad disk; it is not a signature.
"""

import struct
import zlib
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import msgpack
import pyarrow as pa

from tallymark.engine.errors import CorruptObject
from tallymark.engine.packed import unpack
from tallymark.engine.timeline.entry import InstantKind, check_features
from tallymark.engine.timeline.history_base import Decided, HistoryBase
from tallymark.engine.timeline.instant import FLOOR
from tallymark.engine.timeline.log import LATEST_CHECKPOINT
from tallymark.engine.views.base import PartitionState

FORMAT = 1
"""Raised when an older release would misread what a newer one writes. Added fields do not change it."""

_MAGIC = b"TMCP"
_HEAD = struct.Struct("<4sHI")
_SIZE = struct.Struct("<Q")
_ZSTD = pa.Codec("zstd", compression_level=1)
"""Compression level. Higher levels take five times as long, and save nothing: most of a row is the random part of its
name.
"""


USUAL_RATIO_MAX = 64
"""Maximum expected ratio: rows are compressed to a half, and names of partitions to a twentieth."""

PIECE_BYTES = 1 << 20
"""Bytes inflated at once where the ratio is unexpected."""


def seal(fields: dict[str, object]) -> bytes:
    packed: bytes = msgpack.packb(fields, use_bin_type=True)
    body = _SIZE.pack(len(packed)) + _ZSTD.compress(packed, asbytes=True)
    return _HEAD.pack(_MAGIC, FORMAT, _crc(FORMAT, body)) + body


def unseal(data: bytes, *, source: str) -> dict[str, Any]:
    """Return the bytes that ``seal`` was given, by this release or an earlier one.

    Raises:
        CorruptObject: the bytes, named ``source``, are damaged, something else, or of a newer format.
    """
    if len(data) < _HEAD.size + _SIZE.size or data[:4] != _MAGIC:
        raise CorruptObject(f"{source} is not a part of a checkpoint")
    _, version, crc = _HEAD.unpack_from(data)
    if version > FORMAT:
        raise CorruptObject(
            f"{source} is of checkpoint format {version}, and this release reads up to {FORMAT}; install a newer one"
        )
    body = memoryview(data)[_HEAD.size :]
    if _crc(version, body) != crc:
        raise CorruptObject(f"{source} is damaged: its CRC-32 is not {crc:08x}")
    try:
        fields = unpack(_inflated(body[_SIZE.size :], _SIZE.unpack_from(body)[0]))
    except (ValueError, OSError, pa.ArrowException) as error:
        raise CorruptObject(f"{source} is not a part of a checkpoint: {error!r}") from error
    if not isinstance(fields, dict):
        raise CorruptObject(f"{source} is not a part of a checkpoint: not a map")
    return fields


def _inflated(compressed: memoryview, size: int) -> bytes:
    """Return ``size`` bytes. An unexpected size takes no memory before that much was inflated.

    Raises:
        ValueError, OSError, ArrowException: it is damaged, or of another size.
    """
    if size <= USUAL_RATIO_MAX * len(compressed):
        return bytes(_ZSTD.decompress(compressed, size, asbytes=True))
    inflated, piece = bytearray(), memoryview(bytearray(PIECE_BYTES))
    with pa.CompressedInputStream(pa.BufferReader(compressed), "zstd") as stream:
        while len(inflated) <= size and (count := stream.readinto(piece)):  # its read() leaks where it fails
            inflated += piece[:count]
    if len(inflated) != size:
        raise ValueError(f"{size} bytes were put there, and not {len(inflated)}")
    return bytes(inflated)


def _crc(version: int, body: bytes | memoryview) -> int:
    return zlib.crc32(body, version)


CHECKPOINT_FOLDER = ".hoodie/.tallymark/checkpoint"
POINTER = LATEST_CHECKPOINT

_KINDS: tuple[InstantKind, ...] = ("commit", "rollback", "clean")
_REPLACING = 4
"""Added to the number of a kind."""


@dataclass(frozen=True, slots=True)
class Part:
    """A run of partitions whose rows are in one object."""

    first: str
    last: str
    name: str
    size: int
    """Size of the object in bytes."""
    rows_bytes: int
    """Size of its rows before compression."""
    oldest_removal: int
    """The first position at which a file of these rows was removed; 0 if none was."""

    @property
    def path(self) -> str:
        return f"{CHECKPOINT_FOLDER}/{self.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    name: str
    table: str
    """Creation time of the table, as in its properties."""
    history: HistoryBase
    floor: int
    """The oldest position that the rows cover."""
    states: Mapping[str, PartitionState]
    """Every partition that ever contained a file: the same as ``history.partitions``."""
    parts: tuple[Part, ...]
    """Sorted and without overlaps. A partition outside of them has no rows."""

    @property
    def path(self) -> str:
        return self.path_of(self.name)

    @staticmethod
    def path_of(name: str) -> str:
        return f"{CHECKPOINT_FOLDER}/{name}"

    @property
    def position(self) -> int:
        return self.history.position

    @property
    def paths(self) -> frozenset[str]:
        """Paths of all objects that it needs, including its own."""
        return frozenset([self.path, *(part.path for part in self.parts)])


def manifest_name(position: int, nonce: str) -> str:
    return f"{position:020d}-{nonce}"


def position_of(name: str) -> int:
    """Return the position of a manifest of this name. Raises ValueError for another name."""
    return int(name.partition("-")[0])


def put_for(path: str) -> int | None:
    """Return the position for which an object was put; None for the pointer."""
    digits = path.rpartition("/")[2].partition("-")[0]
    return int(digits) if digits.isdecimal() else None


def encode_manifest(manifest: Manifest) -> bytes:
    history, names = manifest.history, sorted(manifest.states)
    early = [decided for decided in history.decided if decided.position <= history.start]
    later = [decided for decided in history.decided if decided.position > history.start]
    counts = Counter(decided.position for decided in later)
    return seal(
        {
            "table": manifest.table,
            "id": history.table,
            "position": history.position,
            "start": history.start,
            "instant_floor": history.floor,
            "time": history.time_ms,
            "reader_features": sorted(history.reader_features),
            "writer_features": sorted(history.writer_features),
            "hash": history.hash,
            "hash_before": history.hash_before,
            "instants": [int(decided.instant) for decided in later],
            "kinds": bytes(map(_code, later)),
            "groups": [[position, count] for position, count in counts.items() if count > 1],
            "voids": sorted(set(range(history.start + 1, history.position + 1)) - counts.keys()),
            "early": [[each.position, int(each.instant), _code(each)] for each in early],
            "txns": dict(history.txns),
            "txn_floors": dict(history.txn_floors),
            "producers": dict(history.producers),
            "cleans": [[position, expired.start, expired.stop] for position, expired in history.cleans.items()],
            "horizon": history.horizon,
            "reached": [int(instant) for instant in history.reached],
            "appends": [list(sizes) for sizes in history.appends],
            "floor": manifest.floor,
            "partitions": names,
            "first": [history.partitions[name] for name in names],
            "live": [manifest.states[name].live for name in names],
            "changed_at": [manifest.states[name].changed_at for name in names],
            "parts": [
                [part.first, part.last, part.name, part.size, part.rows_bytes, part.oldest_removal]
                for part in manifest.parts
            ],
        }
    )


def _code(decided: Decided) -> int:
    assert decided.kind != "archived", "what is archived is not recorded"
    return _KINDS.index(decided.kind) + _REPLACING * decided.is_replacing


def decode_manifest(data: bytes, *, name: str) -> Manifest:
    """Return the manifest that ``encode_manifest`` wrote, in this release or another of the same format.

    Raises:
        CorruptObject: it is damaged, or of a newer format.
        UnsupportedTable: the entries before it need a feature that this release does not know.
    """
    fields = unseal(data, source=f"{CHECKPOINT_FOLDER}/{name}")
    try:
        _check_types(fields)
        states = zip(fields["live"], fields["changed_at"], strict=True)
        manifest = Manifest(
            name=name,
            table=fields["table"],
            history=_history(fields),
            floor=fields["floor"],
            states={
                partition: PartitionState(*state) for partition, state in zip(fields["partitions"], states, strict=True)
            },
            parts=tuple(Part(*part[:6]) for part in fields["parts"]),
        )
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise CorruptObject(f"{CHECKPOINT_FOLDER}/{name} is not a manifest of a checkpoint: {error!r}") from error
    check_features("reader", manifest.history.reader_features, source=manifest.path)
    return manifest


def _check_types(fields: Mapping[str, Any]) -> None:
    """Raise KeyError, TypeError for values at which a reader of rows would fail later."""
    texts, counts = [fields["table"], fields.get("id", "")], [fields[name] for name in _COUNTS]
    producers = fields.get("producers", {})
    counts += [*map(producers.__getitem__, producers)]
    counts += [fields.get("start", 0), fields.get("time", 0), *fields.get("reached", ())]
    features = *fields.get("reader_features", ()), *fields.get("writer_features", ())
    texts += [fields.get("instant_floor", FLOOR), *features]
    for name in _LISTS_OF_COUNTS:
        counts += fields[name]
    early, floors = (*fields.get("early", ()), *fields.get("groups", ())), fields.get("txn_floors", {})
    for several in (*fields["cleans"], *fields["appends"], *(part[3:6] for part in fields["parts"]), *early):
        counts += several
    for several in (
        fields["partitions"],
        fields["txns"],
        producers,
        floors,
        floors.values(),
        *(part[:3] for part in fields["parts"]),
    ):
        texts += several
    counts += [*map(fields["txns"].__getitem__, fields["txns"])]
    hashes = fields["hash"], fields["hash_before"]
    if {*map(type, texts)} != {str} or {*map(type, counts)} != {int} or {*map(type, hashes)} != {bytes}:
        raise TypeError("a value of another type than is written there")


_COUNTS = ("position", "horizon", "floor")
_LISTS_OF_COUNTS = ("instants", "voids", "first", "live", "changed_at")


def _history(fields: Mapping[str, Any]) -> HistoryBase:
    return HistoryBase(
        table=fields.get("id", ""),
        position=fields["position"],
        start=fields.get("start", 0),
        floor=fields.get("instant_floor", FLOOR),
        time_ms=fields.get("time", 0),
        reader_features=frozenset(fields.get("reader_features", ())),
        writer_features=frozenset(fields.get("writer_features", ())),
        hash=fields["hash"],
        hash_before=fields["hash_before"],
        decided=tuple(_decided(fields)),
        txns=fields["txns"],
        txn_floors=fields.get("txn_floors", {}),
        producers=fields.get("producers", {}),
        partitions=dict(zip(fields["partitions"], fields["first"], strict=True)),
        cleans={position: range(start, stop) for position, start, stop in fields["cleans"]},
        horizon=fields["horizon"],
        reached=tuple(f"{instant:017d}" for instant in fields.get("reached", ())),
        appends=tuple((rows, size) for rows, size in fields["appends"]),
    )


def _decided(fields: Mapping[str, Any]) -> Iterable[Decided]:
    voids, later = set(fields["voids"]), range(fields.get("start", 0) + 1, fields["position"] + 1)
    grouped = dict(fields.get("groups", ()))
    counting = (position for position in later if position not in voids for _ in range(grouped.get(position, 1)))
    for position, instant, code in (
        *fields.get("early", ()),
        *zip(counting, fields["instants"], fields["kinds"], strict=True),
    ):
        yield Decided(position, f"{instant:017d}", _KINDS[code % _REPLACING], code >= _REPLACING)


def encode_part(blocks: Mapping[str, bytes]) -> bytes:
    """Return the bytes of blocks by partition."""
    return seal({"blocks": dict(blocks)})


def decode_part(data: bytes, *, source: str) -> dict[str, bytes]:
    """Return the blocks that ``encode_part`` was given. Raises CorruptObject."""
    blocks = unseal(data, source=source).get("blocks")
    if not isinstance(blocks, dict) or {*map(type, blocks)} - {str} or {*map(type, blocks.values())} - {bytes}:
        raise CorruptObject(f"{source} is not a part of a checkpoint: it holds no rows")
    return blocks


def encode_pointer(names: Iterable[str]) -> bytes:
    """Return the bytes of a pointer to these manifests, the newest first."""
    return seal({"manifests": list(names)})


def decode_pointer(data: bytes) -> tuple[str, ...]:
    """Return the names that ``encode_pointer`` was given. Raises CorruptObject."""
    names = unseal(data, source=POINTER).get("manifests")
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise CorruptObject(f"{POINTER} names no manifests")
    return tuple(names)
