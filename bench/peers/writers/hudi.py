"""Apache Hudi: copy-on-write tables, with the settings that its documentation gives for inserts of whole files."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from tallymark.bench.peers.timeline_server import HUDI, HUDI_JARS
from tallymark.bench.peers.writers.committers import LEVEL
from tallymark.bench.peers.writers.hudi_log import configuration, marker_figures
from tallymark.bench.writes.case import WriteCase
from tallymark.bench.writes.order import Figures, FileSizes, Order

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

LOG = "spark.tallymark.bench.log"
"""The setting that says where its log is."""


class Hudi:
    """``bulk_insert`` for appends and ``insert_overwrite`` for overwrites, sorted within tasks. No record keys, but
    where rows are to be replaced by them: an ``upsert``, which finds them by one of Hudi's indexes.

    Without sorting a task would hold a file open for each partition, for which 1 GiB is too little. An append that is
    to leave files of certain sizes is an ``insert``, which looks for small files; ``bulk_insert`` does not.

    Markers ``TIMELINE_SERVER_BASED`` are batched by its timeline server, ``DIRECT`` are an object each.
    """

    jars = HUDI_JARS
    sparks = ("3.5",)
    """That of Maven Central's newest bundle; it runs in a Python of its own (``--python hudi=PATH``)."""

    def __init__(
        self, markers: Literal["TIMELINE_SERVER_BASED", "DIRECT"], index: Literal["SIMPLE", "BLOOM"] = "SIMPLE"
    ) -> None:
        self._markers = markers
        self._index = index
        own = ", direct markers" if markers == "DIRECT" else ", BLOOM index" if index == "BLOOM" else ""
        self.title = f"Hudi {HUDI}{own}"

    def conf(self, scratch: Path) -> Mapping[str, str]:
        scratch.mkdir(parents=True, exist_ok=True)
        log, settings = scratch / "hudi.log", scratch / "log4j2.properties"
        settings.write_text(configuration(log))
        return {
            LOG: str(log),
            "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={settings}",
            "spark.serializer": "org.apache.spark.serializer.KryoSerializer",
            "spark.kryo.registrator": "org.apache.spark.HoodieSparkKryoRegistrar",
            "spark.sql.extensions": "org.apache.spark.sql.hudi.HoodieSparkSessionExtension",
            "spark.hadoop.parquet.compression.codec.zstd.level": LEVEL,
        }

    def absence(self, case: WriteCase, _kind: str) -> str | None:
        if self._markers == "DIRECT" and case.name != "small-files":
            return "its markers are what the small files measure"
        return "its index is what upserts measure" if self._index == "BLOOM" else None

    def write(self, df: "DataFrame", order: Order) -> Figures:
        writing = df.write.format("hudi").options(**self._options(order, tasks=len(df.inputFiles())))
        is_first = not _exists(df, order.target)
        log = Path(df.sparkSession.sparkContext.getConf().get(LOG, ""))
        before = log.stat().st_size
        writing.mode("overwrite" if is_first else "append").save(order.target)
        with log.open() as said:
            said.seek(before)
            return {"operation": self._operation(order), **marker_figures(said)}

    def read(self, session: "SparkSession", target: str) -> "DataFrame":
        return session.read.format("hudi").load(target)

    def _operation(self, order: Order) -> str:
        if order.mode == "upsert":
            return "upsert"
        if order.mode == "append":
            return "bulk_insert" if order.sizes is None else "insert"
        return "insert_overwrite" if order.partition_overwrite == "dynamic" else "insert_overwrite_table"

    def _options(self, order: Order, tasks: int) -> dict[str, str]:
        return {
            **_sizes(order.sizes),
            **_keys(order, self._index),
            "hoodie.table.name": "bench",
            "hoodie.datasource.write.operation": self._operation(order),
            "hoodie.datasource.write.partitionpath.field": ",".join(order.partition_by),
            "hoodie.datasource.write.hive_style_partitioning": "true",
            "hoodie.bulkinsert.sort.mode": "PARTITION_SORT" if order.partition_by else "NONE",
            # Left out, it is that of the cluster's cores, and a file holds what several tasks have for a partition.
            "hoodie.bulkinsert.shuffle.parallelism": str(tasks),
            "hoodie.write.markers.type": self._markers,
            "hoodie.parquet.compression.codec": "uncompressed" if order.codec == "none" else order.codec,
            "hoodie.metadata.enable": "false",
            "hoodie.embed.timeline.server": "true",
        }


def _keys(order: Order, index: str) -> dict[str, str]:
    if order.record_key is None or order.order_by is None:
        return {}
    return {
        "hoodie.datasource.write.recordkey.field": order.record_key,
        "hoodie.datasource.write.precombine.field": order.order_by,
        "hoodie.index.type": index,
    }


def _sizes(sizes: FileSizes | None) -> dict[str, str]:
    if sizes is None:
        return {}
    return {
        "hoodie.parquet.max.file.size": str(sizes.max_file_bytes),
        "hoodie.parquet.small.file.limit": str(sizes.small_file_bytes),
        # A row group is as large as a file by default, too.
        "hoodie.parquet.block.size": str(sizes.max_file_bytes),
        # A filter of record keys takes some 400 kB of a file, however small, and there are no keys to look up.
        "hoodie.parquet.bloom.filter.enabled": "false",
    }


def _exists(df: "DataFrame", target: str) -> bool:
    session = df.sparkSession
    path = session.sparkContext._jvm.org.apache.hadoop.fs.Path(f"{target}/.hoodie")  # type: ignore[union-attr]
    found: bool = path.getFileSystem(session._jsparkSession.sessionState().newHadoopConf()).exists(path)
    return found
