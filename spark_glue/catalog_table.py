"""Table of Spark's catalog that represents one of ours, and the conditions for that."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from tallymark.engine.errors import InvalidRequest
from tallymark.engine.timeline.properties import Readers
from tallymark.spark_glue.catalog_statement import create_statement, quoted, quoted_name

_ESCAPED_LITERALS = "spark.sql.parser.escapedStringLiterals"


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogTable:
    """An external table of Parquet files at the location of a table of ours."""

    name: str
    """Full name, in backticks: independent of the session's current database."""
    location: str
    """As the catalog writes it."""
    partition_by: tuple[str, ...]
    """As the catalog writes them: a Hive metastore may have them in lower case."""


def find_catalog_table(
    session: SparkSession, name: str, url: str, schema: StructType, partition_by: tuple[str, ...]
) -> CatalogTable:
    """Return the table of that name in Spark's catalog, after a check that it represents the one at the URL with these
    columns.

    Raises:
        InvalidRequest: there is none, or it does not; the error contains the statement that creates one.
    """
    quoted = quoted_name(name)
    location = re.sub("^s3:", "s3a:", unquoted(url))
    remedy = f"make one: {create_statement(quoted, schema, partition_by, location)}"
    if not session.catalog.tableExists(quoted):
        raise InvalidRequest(f"catalog_table={name!r} is not in Spark's catalog; {remedy}")
    found = _Description.of(session, quoted)
    for problem in _problems(session, found, url, schema, partition_by):
        raise InvalidRequest(f"catalog_table={name!r} {problem}; {remedy}")
    return CatalogTable(name=found.name, location=found.facts["Location"].rstrip("/"), partition_by=found.partition_by)


def refuse_catalog(name: str, readers: Readers | None) -> None:
    """Raise InvalidRequest for a table whose directories must not be read, as Spark's catalog would do."""
    if readers == "table":
        raise InvalidRequest(
            f"catalog_table={name!r}: a table with readers='table' keeps replaced files in its directories, and Spark "
            "would read them, too; leave catalog_table out, and read by tallymark.read or a Hudi reader"
        )


@dataclass(frozen=True, slots=True)
class _Description:
    """Output of DESCRIBE TABLE EXTENDED."""

    partition_types: Mapping[str, str]
    facts: Mapping[str, str]

    @classmethod
    def of(cls, session: SparkSession, name: str) -> "_Description":
        rows: list[Any] = session.sql(f"DESCRIBE TABLE EXTENDED {name}").collect()
        titles = {row[0]: number for number, row in reversed(list(enumerate(rows))) if row[0][:1] == "#" and not row[1]}
        facts = {row[0]: row[1] for row in rows[titles.get("# Detailed Table Information", len(rows)) + 1 :]}
        types = {}
        for row in rows[titles.get("# Partition Information", len(rows)) + 1 :]:
            if not row[0]:
                break
            if row[0] != "# col_name":
                types[row[0]] = row[1]
        return cls(types, facts)

    @property
    def name(self) -> str:
        return ".".join(quoted(self.facts[part]) for part in ("Catalog", "Database", "Table"))

    @property
    def partition_by(self) -> tuple[str, ...]:
        return tuple(self.partition_types)


def _problems(
    session: SparkSession, found: _Description, url: str, schema: StructType, partition_by: tuple[str, ...]
) -> Iterator[str]:
    """Yield the reasons why it cannot represent the table, the most obvious first."""
    facts = found.facts
    if facts.get("Type") != "EXTERNAL":
        kind = facts.get("Type", "something else").lower()
        yield f"is {kind}; it has to be an external table, whose files Spark leaves alone"
    if not _is_parquet(facts):
        yield f"is a table of {facts.get('Provider', 'something else')}; it has to be one of Parquet files"
    if (location := facts.get("Location", "")) and comparable(location) != comparable(unquoted(url)):
        yield f"lies at {location}, and this table at {url}; both have to be one place"
    if (problem := _partition_problem(found, schema, partition_by)) is not None:
        yield problem
    if partition_by and facts.get("Partition Provider") != "Catalog":
        yield "does not keep its partitions in the catalog; let it: MSCK REPAIR TABLE, or"
    if re.search(r"external\.table\.purge=true", facts.get("Table Properties", ""), flags=re.IGNORECASE):
        yield (
            "has external.table.purge=true, by which dropped partitions lose their files; "
            "unset it (ALTER TABLE ... UNSET TBLPROPERTIES), or"
        )
    if str(session.conf.get(_ESCAPED_LITERALS, "false")).lower() == "true":
        yield f"gets its partitions by SQL that {_ESCAPED_LITERALS}=true does not understand; set it to false, or"


def _is_parquet(facts: Mapping[str, str]) -> bool:
    provider = facts.get("Provider", "").lower()
    return provider == "parquet" or (provider == "hive" and "ParquetHiveSerDe" in facts.get("Serde Library", ""))


def _partition_problem(found: _Description, schema: StructType, partition_by: tuple[str, ...]) -> str | None:
    """Return the problem with its partition columns. Names are compared without case, which a Hive metastore does not
    keep.
    """
    theirs = list(found.partition_by)
    if [name.casefold() for name in theirs] != [name.casefold() for name in partition_by]:
        return f"is partitioned by {theirs}, and this table by {list(partition_by)}; both have to agree"
    types = {field.name: field.dataType.simpleString() for field in schema}
    for column, (name, declared) in zip(partition_by, found.partition_types.items(), strict=True):
        kind = re.sub(r"(var)?char\(\d+\)", "string", declared)
        if kind != types.get(column, kind):  # a column that the rows lack, the write itself refuses
            return f"has partition column {name!r} as {declared}, and this table as {types[column]}; both have to agree"
    return None


def unquoted(url: str) -> str:
    """Return a URL of ours as catalogs write locations: only ``file:`` URLs are encoded here."""
    return unquote(url) if url.startswith("file:") else url


def comparable(location: str) -> str:
    """Return a canonical text of a location: without Hadoop's S3 scheme, default ports, trailing slashes,
    ``file://``.
    """
    scheme, colon, rest = location.partition(":")
    if not colon or "/" in scheme:
        scheme, rest = "file", location
    scheme = {"s3a": "s3", "s3n": "s3"}.get(scheme.lower(), scheme.lower())
    if scheme == "file":
        return "file:" + str(Path("/" + rest.lstrip("/")).resolve())
    authority, _, path = rest.removeprefix("//").partition("/")
    if scheme == "hdfs":
        authority, path = authority.lower().removesuffix(":8020"), re.sub("/+", "/", path)
    return f"{scheme}://{authority}/{path.strip('/')}"
