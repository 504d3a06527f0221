"""``hoodie.properties``: what a table is, fixed when it is created.

Owns: the facts, the keys under which Hudi's readers look for them, and which tables this library refuses. Does not own:
the file's syntax (``java_properties``), which columns a table may have (``avro_schema``), and whether
``.hoodie/metadata`` exists.

The Arrow schema is kept beside the Avro one, because Avro has no word for int8, time zones or column metadata.
"""

import base64
import math
import re
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, cast, get_args

import pyarrow as pa
import pyarrow.types as arrow_types

from tallymark.engine.errors import CorruptObject, InvalidRequest, UnsupportedTable
from tallymark.engine.timeline.avro_schema import avro_schema
from tallymark.engine.timeline.entry import CHANGES, check_features
from tallymark.engine.timeline.instant import parse_instant
from tallymark.engine.timeline.java_properties import load, store
from tallymark.engine.timeline.table_key import TableKey, UniqueIn

_KINDS: tuple[Callable[[pa.DataType], bool], ...] = (
    arrow_types.is_string,
    arrow_types.is_large_string,
    arrow_types.is_signed_integer,
    arrow_types.is_boolean,
    arrow_types.is_date32,
    arrow_types.is_decimal128,
)


def check_partition_columns(schema: pa.Schema, partition_by: Sequence[str]) -> None:
    """Check that a table of this schema can be partitioned by these columns.

    Raises:
        InvalidRequest: names the column, the rule it breaks and the remedy.
    """
    for position, column in enumerate(partition_by):
        if column in partition_by[:position]:
            raise InvalidRequest(f"partition column {column!r} is named twice; name it once")
        _check_column(schema, column)
    if partition_by and len(partition_by) == len(schema):
        raise InvalidRequest(
            f"partition columns {', '.join(map(repr, partition_by))} are all there is; "
            "readers need a column that is not in the path: partition by fewer columns or add one"
        )


def _check_column(schema: pa.Schema, column: str) -> None:
    found = schema.get_all_field_indices(column)
    if not found:
        known = ", ".join(map(repr, schema.names))
        raise InvalidRequest(
            f"partition column {column!r} is not in the schema; top-level columns are {known} "
            "(a field inside a struct cannot partition: copy it into a column)"
        )
    if len(found) > 1:
        raise InvalidRequest(f"partition column {column!r} stands {len(found)} times in the schema; rename the others")
    if not column or column.startswith("."):
        raise InvalidRequest(f"partition column {column!r} would make a directory that readers skip; rename the column")
    kind = schema.field(column).type
    if not any(is_kind(kind) for is_kind in _KINDS):
        raise InvalidRequest(
            f"partition column {column!r} is {kind}; a partition column is a string, a signed integer, a bool, "
            f"a date32 or a decimal128: derive one from it, such as a date or a bucket number"
        )


PROPERTIES = ".hoodie/hoodie.properties"
"""Path of a table's properties, relative to its base path."""

FORMAT = 2
"""Value of ``tallymark.format``: raised when an older release would misread, or damage, what a newer one writes. Format
1 has no ``tallymark.id``, and its log entries are not linked.
"""

Readers = Literal["directory", "table"]

RETAIN_HOURS = 24.0
"""Default retention of replaced files in a table with ``readers="table"``: a day of reruns, and longer than most
queries run.
"""

_KIND = {"hoodie.table.version": "6", "hoodie.timeline.layout.version": "1", "hoodie.table.type": "COPY_ON_WRITE"}

_METADATA_TABLE = "hoodie.table.metadata.partitions"

_FIXED = {
    "hoodie.table.base.file.format": "PARQUET",
    "hoodie.table.timeline.timezone": "UTC",
    "hoodie.datasource.write.hive_style_partitioning": "true",
    "hoodie.datasource.write.partitionpath.urlencode": "true",
    "hoodie.datasource.write.drop.partition.columns": "false",
    "hoodie.populate.meta.fields": "false",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class TableProperties:
    """The facts of a table. The constructor checks them, and raises InvalidRequest for what cannot become a table.

    Equality ignores the schema's metadata, as Arrow's does.
    """

    name: str
    partition_by: tuple[str, ...]
    schema: pa.Schema
    """The columns as they are written, partition columns included, with nullability and metadata: of a table with field
    ids also the id of each field, as ``PARQUET:field_id``.
    """
    created: str
    """The instant of its creation."""
    id: str = ""
    """Random; a table that is created again at the same place has another. Empty in a table of format 1."""
    readers: Readers = "directory"
    """``directory``: replaced files are deleted right after the commit. ``table``: they remain for ``retain_hours``."""
    retain_hours: float | None = None
    """Only of a table with ``readers="table"``."""
    writer_features: tuple[str, ...] = ()
    """Features that a writer of the table needs to know: see ``entry``."""
    key: TableKey | None = None
    """Its record key; None for a table whose rows have none."""
    last_field_id: int = 0
    """The greatest field id that a column of the table ever had, so that none is given twice; 0 in a table without
    field ids, which an earlier release has created.
    """

    def __post_init__(self) -> None:
        _check_name(self.name)
        self.avro_schema()
        check_partition_columns(self.schema, self.partition_by)
        check_readers(self.readers)
        if self.key is not None:
            self.key.check(self.schema)
        if self.readers == "table":
            check_retain_hours(self.retain_hours)
        elif self.retain_hours is not None:
            raise InvalidRequest(
                f"retain_hours={self.retain_hours!r}: a table with readers='directory' keeps no replaced files; leave "
                "retain_hours out, or make the table with readers='table'"
            )

    def avro_schema(self) -> str:
        return avro_schema(self.schema, name=self.name)

    def encode(self) -> bytes:
        """Return the file's bytes, in ASCII; the same properties give the same bytes.

        Hudi's checksum, of the name, is the last line, so that a torn file lacks it; ``tallymark.checksum`` is of what
        decides how the table is written.
        """
        partitioning = {"hoodie.table.partition.fields": ",".join(self.partition_by)} if self.partition_by else {}
        facts = {
            "hoodie.table.name": self.name,
            **_KIND,
            **_FIXED,
            **partitioning,
            "hoodie.table.keygenerator.class": f"org.apache.hudi.keygen.{_key_generator(self.partition_by)}",
            "hoodie.archivelog.folder": "archived",
            "hoodie.table.create.schema": self.avro_schema(),
            "tallymark.format": str(FORMAT if self.id else 1),
            "tallymark.created": self.created,
            **({"tallymark.id": self.id} if self.id else {}),
            **(_key_facts(self.key) if self.key else {}),
            **({"tallymark.writer_features": ",".join(self.writer_features)} if self.writer_features else {}),
            "tallymark.readers": self.readers,
            **({} if self.retain_hours is None else {"tallymark.retain_hours": repr(float(self.retain_hours))}),
            "tallymark.schema": _encode_schema(self.schema),
            **({"tallymark.last_field_id": str(self.last_field_id)} if self.last_field_id else {}),
        }
        return store(
            {**facts, "tallymark.checksum": _checksum_of_own(facts), "hoodie.table.checksum": _checksum(self.name)}
        )

    @classmethod
    def decode(cls, data: bytes) -> "TableProperties":
        """Return the properties that ``encode`` wrote, also after Hudi's tools have rewritten the file in their form.

        Raises:
            UnsupportedTable: a Hudi table that this library does not write; the message has what was found and needed.
            CorruptObject: not such a file, or a damaged one.
        """
        found = load(data, source=PROPERTIES)
        if "hoodie.table.name" not in found:
            raise _damaged("it has no hoodie.table.name: it is torn, or not a table's properties")
        _check_supported(found)
        if found.get("tallymark.checksum", checksum := _checksum_of_own(found)) != checksum:
            raise _damaged("tallymark.checksum does not fit")
        try:
            properties = cls(
                name=found["hoodie.table.name"],
                partition_by=tuple(filter(None, found.get("hoodie.table.partition.fields", "").split(","))),
                schema=_decode_schema(found["tallymark.schema"]),
                created=found["tallymark.created"],
                id="" if found["tallymark.format"] == "1" else found["tallymark.id"],
                readers=_decode_readers(found.get("tallymark.readers")),
                writer_features=_features(found, "writer"),
                retain_hours=_decode_hours(found.get("tallymark.retain_hours")),
                key=_decode_key(found),
                last_field_id=_decode_field_id(found.get("tallymark.last_field_id", "0")),
            )
            parse_instant(properties.created)
            database = found.get("hoodie.database.name", "")
            if found["hoodie.table.checksum"] != _checksum(properties.name, database=database):
                raise ValueError("hoodie.table.checksum does not fit hoodie.table.name")
        except (KeyError, ValueError, CorruptObject) as error:
            raise _damaged(repr(error)) from error
        return properties


def _damaged(reason: str) -> CorruptObject:
    return CorruptObject(f"{PROPERTIES} is damaged: {reason}; restore it from a copy")


def check_readers(readers: object) -> None:
    if readers not in get_args(Readers):
        raise InvalidRequest(
            f"readers={readers!r}: say 'directory', where anything that reads Parquet may read the table at rest, or "
            "'table', where replaced files stay for a while and readers go by the log or the Hudi timeline"
        )


def check_retain_hours(hours: object) -> None:
    if not isinstance(hours, int | float) or isinstance(hours, bool) or not 0 <= hours < math.inf:
        raise InvalidRequest(f"retain_hours={hours!r}: give a number of hours, 0 or more")


def _check_name(name: str) -> None:
    try:
        if name and name.encode("utf-8"):
            return
    except UnicodeEncodeError:
        pass
    raise InvalidRequest(f"table name {name!r} is empty or no Unicode text; give the table a name")


def _check_supported(found: dict[str, str]) -> None:
    for key, needed in _KIND.items():
        _check_same(found, key, needed)
    if found.get(_METADATA_TABLE):
        raise UnsupportedTable(
            f"the table has a metadata table ({_METADATA_TABLE}={found[_METADATA_TABLE]!r}), which a write by "
            "Tallymark would leave behind; needed is a table without one: drop it with Hudi's tools, or write to "
            "another path"
        )
    if "hoodie.table.checksum" not in found:
        raise _damaged("it has no hoodie.table.checksum: it is torn")
    _check_format(found.get("tallymark.format"))
    check_features("reader", _features(found, "reader"), source=PROPERTIES)
    for key, needed in _FIXED.items():
        _check_same(found, key, needed)
    _decode_readers(found.get("tallymark.readers"))


def _check_same(found: dict[str, str], key: str, needed: str) -> None:
    if found.get(key) != needed:
        raise UnsupportedTable(
            f"the table has {key}={found.get(key, 'nothing')!r} in {PROPERTIES}, and Tallymark writes only tables with "
            f"{needed!r}; write it with the tool that made it so, or write to another path"
        )


def _decode_readers(found: str | None) -> Readers:
    if found not in get_args(Readers):
        raise UnsupportedTable(
            f"the table has tallymark.readers={found or 'nothing'!r} in {PROPERTIES}, and Tallymark knows "
            "'directory' and 'table'; install a newer release, or write to another path"
        )
    return cast("Readers", found)


def _features(found: dict[str, str], role: str) -> tuple[str, ...]:
    return tuple(filter(None, found.get(f"tallymark.{role}_features", "").split(",")))


def _key_facts(key: TableKey) -> dict[str, str]:
    """Return the key's properties. Hudi's own are left out: with them its writers would no longer refuse the table."""
    return {
        "tallymark.reader_features": CHANGES,
        "tallymark.record_key": ",".join(key.record_key),
        **({"tallymark.order_by": ",".join(key.order_by)} if key.order_by else {}),
        "tallymark.unique_in": key.unique_in,
    }


def _decode_key(found: Mapping[str, str]) -> TableKey | None:
    if "tallymark.record_key" not in found:
        return None
    return TableKey(
        record_key=tuple(found["tallymark.record_key"].split(",")),
        order_by=tuple(filter(None, found.get("tallymark.order_by", "").split(","))),
        unique_in=cast("UniqueIn", found["tallymark.unique_in"]),
    )


def _decode_hours(found: str | None) -> float | None:
    return None if found is None else float(found)


def _decode_field_id(found: str) -> int:
    if not re.fullmatch(r"[0-9]{1,9}", found):
        raise ValueError(f"tallymark.last_field_id={found!r} is not a field id")
    return int(found)


def _check_format(found: str | None) -> None:
    if found is None:
        raise UnsupportedTable(
            f"the table was not created by Tallymark ({PROPERTIES}: no tallymark.format, needed {FORMAT}); write to "
            "another path: two kinds of writers on one table would delete each other's files"
        )
    if not re.fullmatch(r"[1-9][0-9]{0,8}", found):
        raise _damaged(f"tallymark.format={found!r} is not a number")
    if int(found) > FORMAT:
        raise UnsupportedTable(
            f"the table has tallymark.format={found!r} in {PROPERTIES}, and this release writes formats up to "
            f"{FORMAT}; install a newer release of Tallymark"
        )


def _key_generator(partition_by: tuple[str, ...]) -> str:
    return ("NonpartitionedKeyGenerator", "SimpleKeyGenerator", "ComplexKeyGenerator")[min(len(partition_by), 2)]


def _checksum_of_own(found: Mapping[str, str]) -> str:
    """Return the CRC-32 of what decides how the table is written, as sorted lines: Hudi's tools change other keys."""
    keys = {key for key in found if key.startswith("tallymark.")} | {"hoodie.table.partition.fields"}
    lines = (f"{key}={found.get(key, '')}\n" for key in sorted(keys - {"tallymark.checksum"}))
    return f"{zlib.crc32(''.join(lines).encode()):08x}"


def _checksum(name: str, *, database: str = "") -> str:
    """Return Hudi's checksum: the CRC-32 of ``<database>.<table>``."""
    return str(zlib.crc32(f"{database}.{name}".encode()))


def _encode_schema(schema: pa.Schema) -> str:
    """Return the schema as base64 without padding: Daft splits a line at every "="."""
    return base64.urlsafe_b64encode(schema.serialize().to_pybytes()).decode("ascii").rstrip("=")


def _decode_schema(text: str) -> pa.Schema:
    try:
        data = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
        return pa.ipc.read_schema(pa.py_buffer(data))
    except (ValueError, OSError, pa.ArrowException) as error:
        raise ValueError(f"tallymark.schema holds no Arrow schema: {error}") from error
