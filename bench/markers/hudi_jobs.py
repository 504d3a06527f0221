"""Whole Spark jobs of Hudi: one insert, with its markers by each of the servers that can take them, and direct ones.

All jobs have the same session, whose executor is another process than its driver, and take turns. Each writes to a new
copy of one small table. Hudi's bundle needs Spark 3.5: with another one this part is left out.
"""

import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from statistics import median
from subprocess import SubprocessError

import psutil

from tallymark.backends import StorageOptions
from tallymark.backends.errors import TallymarkError
from tallymark.bench.child import Child, child
from tallymark.bench.jars import BARE, BARE_CONF, fetch, jar_cache, java
from tallymark.bench.markers.file_writes import file_writes
from tallymark.bench.markers.sides import HEAP_MB, Tuning
from tallymark.bench.markers.taking import first_line
from tallymark.bench.method import rotated
from tallymark.bench.paired import Estimate, estimate
from tallymark.bench.peers.timeline_server import HUDI, HUDI_JARS, timeline_server
from tallymark.bench.results import Chart, Table, column, number, seconds, size
from tallymark.bench.serve_process import serve_process
from tallymark.bench.stores import MarkerStore
from tallymark.engine.serve.hudi_options import hudi_options

SPARK = "3.5."

SLOTS = 8
"""Tasks that run at a time."""

MASTER = f"local-cluster[1,{SLOTS},2048]"
"""One executor, in a process of its own."""

TEMPORARY = ".hoodie/.temp"

EMBEDDED = "embedded"
"""The side that others are compared with: Hudi's default."""

_BATCHED = {"hoodie.write.markers.type": "TIMELINE_SERVER_BASED", "hoodie.embed.timeline.server": "true"}
_DIRECT = {"hoodie.write.markers.type": "DIRECT", "hoodie.embed.timeline.server": "true"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Insert:
    """Rows of which each task has some for each partition: a file per task and partition."""

    partitions: int = 100
    tasks: int = 20
    rows_per_file: int = 100

    @property
    def files(self) -> int:
        return self.partitions * self.tasks

    @property
    def rows(self) -> int:
        return self.files * self.rows_per_file

    def fields(self) -> dict[str, int]:
        return {"rows": self.rows, "tasks": self.tasks, "partitions": self.partitions}

    def options(self) -> dict[str, str]:
        return {
            "hoodie.table.name": "bench",
            "hoodie.datasource.write.recordkey.field": "id",
            "hoodie.datasource.write.partitionpath.field": "part",
            "hoodie.datasource.write.precombine.field": "at",
            "hoodie.datasource.write.operation": "bulk_insert",
            "hoodie.bulkinsert.sort.mode": "PARTITION_SORT",
            "hoodie.bulkinsert.shuffle.parallelism": str(self.tasks),
            "hoodie.metadata.enable": "false",
            # A filter of record keys takes about 400 kB of a file, however small.
            "hoodie.parquet.bloom.filter.enabled": "false",
        }


@dataclass(frozen=True, slots=True)
class JobSide:
    name: str
    title: str
    options: Mapping[str, str]
    pid: int | None = None
    """Of the service that takes its markers, where that is not the driver."""


@dataclass(frozen=True, slots=True)
class Job:
    """One insert of one side."""

    files: int
    wall_s: float
    driver_s: float
    executors_s: float
    service_s: float | None
    puts: int
    marker_bytes: int
    left: int
    """Files of markers after it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WholeJobRow:
    """Medians of the rounds."""

    side: str
    title: str = column("")
    files: float = column("data files", number)
    wall_s: float = column("whole job", seconds)
    wall_ratio: Estimate = column("over embedded")
    driver_s: float = column("driver CPU", seconds)
    driver_ratio: Estimate = column("over embedded")
    service_s: float | None = column("service CPU", seconds)
    executors_s: float = column("executor CPU", seconds)
    puts: float = column("marker files written", number)
    marker_bytes: float = column("bytes of them", size)
    left: float = column("left", number)


def absence() -> str | None:
    """Return why whole jobs cannot run here."""
    try:
        spark = version("pyspark")
    except PackageNotFoundError:
        return f"whole jobs of Hudi need PySpark {SPARK}*, and there is none"
    if not spark.startswith(SPARK):
        return f"Hudi's bundle {HUDI} is for Spark {SPARK}*, and this is {spark}"
    if java() is None:
        return "whole jobs of Hudi need a Java: set JAVA_HOME or put one on PATH"
    return None


def job_tables(
    store: MarkerStore, insert: Insert, rounds: int, logs: Path, progress: Callable[[str], None]
) -> Iterator[Table]:
    """Measure the same insert by each side in turn, after one of each that does not count."""
    title, why = "whole jobs of Hudi", absence()
    if store.folder is None:
        why = "its tables are measured in folders of this machine only"
    if why is not None or store.folder is None:
        yield Table(title=title, rows=[], absent={title: why or ""})
        return
    absent: dict[str, str] = {}
    taken: dict[str, list[Job]] = {}
    tables = (store.folder / "jobs").resolve()
    with ExitStack() as stack:
        try:
            writer = stack.enter_context(child("tallymark.bench.markers.hudi_writer", logs / "hudi-writer.log"))
            writer.ask(_conf(logs))
            sides = list(_sides(tables, logs, stack, absent))
            jobs = Jobs(writer, tables, insert)
            jobs.make_template()
            for turn in range(rounds + 1):
                for side in rotated(sides, turn):
                    progress(f"markers: a job of {insert.files:,} files, round {turn} of {rounds}: {side.title}")
                    found = jobs.run(side, f"{side.name}-{turn}")
                    if turn:
                        taken.setdefault(side.name, []).append(found)
            writer.ask({"stop": None})
        except (TallymarkError, OSError, SubprocessError) as error:
            yield Table(title=title, rows=[], absent={title: first_line(error)})
            return
    rows = [row(side, taken[side.name], taken[EMBEDDED]) for side in sides]
    charts = (
        Chart(values=("wall_s", "driver_s"), axis="seconds"),
        Chart(values=("marker_bytes",), axis="bytes", is_log=True),
    )
    where = f"{store.where}; Hadoop without chmod forks"
    what = f"{insert.files:,} files by {insert.tasks} tasks, {SLOTS} at a time, medians of {rounds} rounds"
    yield Table(title=f"{title}, {what}, {where}", rows=rows, charts=charts, absent=absent)


@dataclass(frozen=True, slots=True)
class Jobs:
    writer: Child
    tables: Path
    insert: Insert

    def make_template(self) -> None:
        """Write the table that each job gets a copy of, with a single row."""
        one = Insert(partitions=1, tasks=1, rows_per_file=1)
        self._write(self._template, one, _DIRECT, mode="overwrite")

    def run(self, side: JobSide, name: str) -> Job:
        """Run one job of the side on its own table, which is removed afterwards."""
        table = self.tables / name
        shutil.copytree(self._template, table)
        folder = table / TEMPORARY
        folder.mkdir(exist_ok=True)
        before = _cpu_s(side.pid)
        with file_writes(folder) as writes:
            found = self._write(table, self.insert, side.options, mode="append")
        after = _cpu_s(side.pid)
        files = len([*table.rglob("*.parquet")]) - len([*self._template.rglob("*.parquet")])
        self._check(table, side)
        left = len([path for path in folder.rglob("*") if path.is_file()])
        shutil.rmtree(table)
        service_s = None if before is None or after is None else after - before
        return Job(files=files, service_s=service_s, puts=writes.count, marker_bytes=writes.bytes, left=left, **found)

    @property
    def _template(self) -> Path:
        return self.tables / "template"

    def _write(self, table: Path, insert: Insert, options: Mapping[str, str], *, mode: str) -> dict[str, float]:
        request = {"table": str(table), "mode": mode, "options": {**insert.options(), **options}, **insert.fields()}
        return self.writer.ask({"write": request})

    def _check(self, table: Path, side: JobSide) -> None:
        rows = self.writer.ask({"count": str(table)})["rows"]
        assert rows == self.insert.rows + 1, f"{side.title}: {rows} rows of {self.insert.rows + 1}"


def row(side: JobSide, jobs: list[Job], embedded: list[Job]) -> WholeJobRow:
    pairs = list(zip(jobs, embedded, strict=True))
    services = [job.service_s for job in jobs if job.service_s is not None]
    return WholeJobRow(
        side=side.name,
        title=side.title,
        files=median(job.files for job in jobs),
        wall_s=median(job.wall_s for job in jobs),
        wall_ratio=estimate([job.wall_s / other.wall_s for job, other in pairs]),
        driver_s=median(job.driver_s for job in jobs),
        driver_ratio=estimate([job.driver_s / other.driver_s for job, other in pairs]),
        service_s=median(services) if services else None,
        executors_s=median(job.executors_s for job in jobs),
        puts=median(job.puts for job in jobs),
        marker_bytes=median(job.marker_bytes for job in jobs),
        left=median(job.left for job in jobs),
    )


def _sides(tables: Path, logs: Path, stack: ExitStack, absent: dict[str, str]) -> Iterator[JobSide]:
    yield JobSide(EMBEDDED, f"Hudi {HUDI}, its embedded server", _BATCHED)
    arguments = Tuning().arguments()
    try:
        server = stack.enter_context(timeline_server(logs / "standalone", heap_mb=HEAP_MB, arguments=arguments))
        options = hudi_options("127.0.0.1", server.port)
        yield JobSide("standalone", f"Hudi {HUDI}, its standalone server", options, server.pid)
    except (TallymarkError, OSError, SubprocessError) as error:
        absent["Hudi's standalone server"] = first_line(error)
    yield JobSide("direct", f"Hudi {HUDI}, direct markers", _DIRECT)
    try:
        served = stack.enter_context(serve_process(str(tables), StorageOptions(), logs / "serve-jobs"))
        yield JobSide("serve", f"Hudi {HUDI}, tallymark serve", hudi_options("127.0.0.1", served.hudi_port), served.pid)
    except TallymarkError as error:
        absent["tallymark serve"] = first_line(error)


def _conf(logs: Path) -> dict[str, str]:
    paths = ":".join(map(str, fetch([*BARE, *HUDI_JARS], jar_cache())))
    return {
        **BARE_CONF,
        "spark.master": MASTER,
        "spark.driver.memory": "1g",
        "spark.executor.memory": "1g",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.serializer": "org.apache.spark.serializer.KryoSerializer",
        "spark.kryo.registrator": "org.apache.spark.HoodieSparkKryoRegistrar",
        "spark.sql.extensions": "org.apache.spark.sql.hudi.HoodieSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.hudi.catalog.HoodieCatalog",
        "spark.sql.warehouse.dir": str(logs / "warehouse"),
        "spark.hadoop.hadoop.tmp.dir": str(logs / "hadoop"),
        "spark.driver.extraClassPath": paths,
        "spark.executor.extraClassPath": paths,
    }


def _cpu_s(pid: int | None) -> float | None:
    if pid is None:
        return None
    times = psutil.Process(pid).cpu_times()
    return float(times.user + times.system)
