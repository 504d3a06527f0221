"""Flights by year and month: written by real tasks, and read off the files that the log names."""

from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa

from tallymark.backends import Backend
from tallymark.engine.jobs.result import WriteResult
from tallymark.engine.settings import MarkerSettings
from tallymark.engine.table import Table
from tests.engine.jobs.scene import rows_in, table, write_in_thread

FLIGHTS = pa.schema([("flight", pa.int64()), ("year", pa.int32()), ("month", pa.int32())])
BY = ("year", "month")
Row = tuple[int, int, int]

OLD: tuple[Row, ...] = ((1, 2013, 1), (2, 2013, 2), (3, 2014, 1), (4, 20130, 1))
NEW: Row = (9, 2013, 1)
YEAR = {"year": 2013}
MONTH = {"year": 2013, "month": 1}
MONTHS = [MONTH, {"year": 2013, "month": 2}]
STATIC: dict[str, Any] = {"mode": "overwrite"}
DYNAMIC: dict[str, Any] = {"mode": "overwrite", "partition_overwrite": "dynamic"}


def flights(rows: Iterable[Row], schema: pa.Schema = FLIGHTS) -> pa.Table:
    """Of these rows, the columns of the schema."""
    return pa.Table.from_pylist([dict(zip(FLIGHTS.names, row, strict=True)) for row in rows], schema=schema)


def begin(where: Backend | Table, mode: str = "append", *, schema: pa.Schema = FLIGHTS, **named):
    named.setdefault("markers", MarkerSettings(kind="direct"))
    target = where if isinstance(where, Table) else table(where)
    return target.write(schema=schema, mode=mode, partition_by=named.pop("partition_by", BY), **named)  # type: ignore[arg-type]


async def write(
    backend: Backend, rows: Iterable[Row], mode: str = "append", *, schema: pa.Schema = FLIGHTS, **named
) -> WriteResult:
    """One task, committed."""
    async with begin(backend, mode, schema=schema, **named) as job:
        result: WriteResult = await job.commit([await write_in_thread(job, backend, flights(rows, schema))])
        return result


def held(objects: Mapping[str, bytes]) -> list[Row]:
    return sorted(tuple(row[name] for name in FLIGHTS.names) for row in rows_in(objects))
