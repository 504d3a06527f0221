"""Synchronisation of the partitions in Spark's catalog with the commit log.

Owns: when the catalog is updated, and that it ends with the newest state. Does not own: the SQL
(``catalog_statement``), nor which catalog table is suitable (``catalog_table``).

Several writers may do this concurrently. Each reads the log, updates the catalog, and reads the log again, until
nothing was committed in between. So the last update has the state of the log after it, too.
"""

import os
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from anyio.from_thread import start_blocking_portal
from pyspark.sql import SparkSession

from tallymark.backends.events import EventLog
from tallymark.backends.options import StorageOptions
from tallymark.engine.errors import TryAgain, UnsupportedTable
from tallymark.engine.jobs.result import WriteResult
from tallymark.engine.table import open_table
from tallymark.engine.views.partitions import Partitions
from tallymark.spark_glue.catalog_statement import add_statements, drop_statements, partition_values
from tallymark.spark_glue.catalog_table import CatalogTable, find_catalog_table, refuse_catalog
from tallymark.spark_glue.schema import spark_schema
from tallymark.spark_glue.storage_options import storage_options

ROUNDS = 5
"""Updates of the catalog before it is left to the writers whose commits are in between."""

_events = EventLog(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogChange:
    """The update of a catalog table. Partitions are paths below the table."""

    table: str
    added: tuple[str, ...]
    dropped: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.table}: {len(self.added):,} partitions added, {len(self.dropped):,} dropped"


def sync_catalog(
    spark: SparkSession,
    url: str | os.PathLike[str],
    catalog_table: str,
    *,
    options: StorageOptions | None = None,
) -> CatalogChange:
    """Update the partitions of a table in Spark's catalog to those of the table at the URL, and refresh it.

    Partitions of the table that the catalog lacks are added; partitions that the table has emptied and the catalog
    still has are dropped. Other partitions of the catalog are left alone. Files are not touched. ``options`` are as in
    ``write``.

    Raises:
        InvalidRequest: the catalog table does not exist, or cannot represent this one (UnsupportedTable: no table).
        TryAgain: other writers committed all the time. Errors of Spark and its metastore are raised as they are.
    """
    table = open_table(url, options=storage_options(spark, url, options))
    with start_blocking_portal("trio") as portal:
        properties = portal.call(table.properties)
        if properties is None:
            raise UnsupportedTable(f"{table.url} holds no table yet; the first write creates it")
        refuse_catalog(catalog_table, properties.readers)
        schema = spark_schema(properties.schema)
        target = find_catalog_table(spark, catalog_table, table.url, schema, properties.partition_by)
        return refresh_catalog(spark, target, lambda: portal.call(table.partitions))


def refresh_catalog(session: SparkSession, target: CatalogTable, read: Callable[[], Partitions]) -> CatalogChange:
    """Update the catalog until it has the newest state; ``read`` reads the log."""
    started = time.monotonic()
    added: dict[str, None] = {}
    dropped: dict[str, None] = {}
    if target.partition_by:
        found = read()
        for _ in range(ROUNDS):
            new, gone = _apply(session, target, found)
            added.update(dict.fromkeys(new))
            dropped.update(dict.fromkeys(gone))
            sent, found = found, read()
            if found.position == sent.position:
                break
        else:
            raise TryAgain(f"{target.name} was updated {ROUNDS} times, and others committed each time")
    session.sql(f"REFRESH TABLE {target.name}")
    change = CatalogChange(table=target.name.replace("`", ""), added=tuple(added), dropped=tuple(dropped))
    _events.info(
        "catalog.updated",
        table=change.table,
        added=len(added),
        dropped=len(dropped),
        seconds=time.monotonic() - started,
    )
    return change


def caught_up(
    session: SparkSession, target: CatalogTable, result: WriteResult, read: Callable[[], Partitions]
) -> WriteResult:
    """Return the result of a committed write, once the catalog was updated. The commit is valid even if this fails."""
    try:
        return replace(result, catalog=str(refresh_catalog(session, target, read)))
    except Exception as error:  # Spark's, Py4J's, the metastore's, storage's: none of them undoes the commit
        reason = str(error).strip().partition("\n")[0] or type(error).__name__
        _events.warning("catalog.failed", instant=result.instant, table=target.name.replace("`", ""), reason=reason)
        pending = (
            f"catalog table {target.name} does not have the newest partitions ({reason}); the next write that names "
            "it, or tallymark.sync_catalog, updates it"
        )
        return replace(result, pending="; ".join(filter(None, (result.pending, pending))))


def _apply(session: SparkSession, target: CatalogTable, found: Partitions) -> tuple[list[str], list[str]]:
    """Return the partitions that were added, and those that were dropped."""
    listed = {partition_values(row[0]) for row in session.sql(f"SHOW PARTITIONS {target.name}").collect()}
    new = sorted(path for path in found.live if partition_values(path) not in listed)
    gone = sorted(path for path in found.emptied if partition_values(path) in listed)
    statements = [
        *add_statements(target.name, target.partition_by, target.location, new),
        *drop_statements(target.name, target.partition_by, gone),
    ]
    for statement in statements:
        session.sql(statement)
    return new, gone
