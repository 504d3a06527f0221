"""Hits of all lookups in the JVM, where a file is a number: its place among the files that are looked up."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f
from pyspark.sql.types import IntegerType, StructField, StructType

from tallymark.engine.tasks.merge import ROW
from tallymark.engine.tasks.ticket import WriteTicket
from tallymark.engine.upsert.keys import key_of
from tallymark.engine.upsert.locate import FILE, hit_schema
from tallymark.spark_glue.upsert.rows import spark_types
from tallymark.spark_glue.upsert.stage import hit_columns

_INSTANT = re.compile(r"_([0-9]*)\.[^.]*$")


@dataclass(frozen=True, slots=True)
class Hits:
    """Of all lookups, at least one."""

    rows: DataFrame
    """In ``hit_types``, and the rows that end files."""
    files: Sequence[str]
    """The paths of all files that were looked up, by number."""
    is_single: bool
    """Whether no key has several."""

    def found(self, ticket: WriteTicket) -> DataFrame:
        """Return the hits alone."""
        return self.rows.where(f.col(hit_columns(ticket)[ROW]) >= 0)

    def of_file(self, ticket: WriteTicket, values: Mapping[str, int]) -> Column:
        """Return the value of each hit's file, by its path; null where it has none."""
        numbers = json.dumps([values.get(path) for path in self.files])
        return f.get(f.from_json(f.lit(numbers), "array<int>"), f.col(hit_columns(ticket)[FILE]))

    def ages(self) -> dict[str, int]:
        """Return a number for each file, the lower the newer it is."""
        newest = sorted(sorted(self.files), key=_instant, reverse=True)
        return {path: number for number, path in enumerate(newest)}


def _instant(path: str) -> str:
    found = _INSTANT.search(path)
    return found[1] if found else ""


def hit_types(ticket: WriteTicket) -> StructType:
    """Return the schema of hits in the JVM."""
    columns = hit_columns(ticket)
    fields = [field for field in hit_schema(ticket) if field.name != FILE]
    types = dict(zip((field.name for field in fields), spark_types(fields), strict=True)) | {FILE: IntegerType()}
    return StructType([StructField(name, types[column]) for column, name in columns.items()])


def same_columns(ticket: WriteTicket) -> list[str]:
    """Return the columns of the table in which a row equals the hits of its key."""
    key = key_of(ticket)
    return list(dict.fromkeys([*key.record_key, *(ticket.partition_by if key.unique_in == "partition" else ())]))


def is_single(hits: DataFrame, ticket: WriteTicket) -> bool:
    """Return whether no key has several hits, as keys of one hash are taken to be."""
    hit = hit_columns(ticket)
    key = f.xxhash64(*(hit[name] for name in same_columns(ticket)))
    counts = hits.where(f.col(hit[ROW]) >= 0).groupBy(key).count()
    return bool(counts.agg(f.max("count")).collect()[0][0] == 1)
