"""A driver that says all it can say: a write that commits, one that fails, a plan, a read, and what is refused.

Run as ``python -m tests.system.spark.canary_program <url> <another url> <folder> <Hadoop's settings as JSON>``.
The credentials are in its environment. What it says, and all that its tasks and Spark say, goes to standard output and
error, or into the folder.
"""

import json
import logging
import os
import sys
from collections.abc import Iterable, Iterator
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark import cloudpickle
from pyspark.sql import SparkSession

import tallymark
from tallymark import TallymarkError
from tallymark.backends import StorageOptions, open_backend
from tallymark.spark_glue import stage
from tallymark.spark_glue.storage_options import storage_options
from tests.support.spark import LOCAL, start_session
from tests.system.spark.elsewhere import disturbed
from tests.system.spark.faults import boom
from tests.system.spark.jobs import EAGER, wide_rows


def run(url: str, elsewhere: str, folder: Path, settings: dict[str, str]) -> None:
    logging.basicConfig(level=logging.DEBUG)
    spark = start_session(
        LOCAL,
        **{f"spark.hadoop.{name}": value for name, value in settings.items()},
        **{"spark.eventLog.enabled": "true", "spark.eventLog.compress": "false"},
        **{"spark.eventLog.dir": (folder / "events").as_uri()},
    )
    say_all(spark)
    rows = wide_rows(spark)
    told = storage_options(spark, url, None)
    options = StorageOptions(
        endpoint=told.endpoint, region=told.region, path_style=told.path_style, spool_memory_bytes=1
    )
    show("options", told, open_backend(url, options=told))
    task = stage.write_partition
    stage.write_partition = partial(outspoken, task, folder)
    keep_tasks_pickle(folder)
    show("result", write(spark, url, options))
    tallymark.read(spark, url).explain(extended=True)
    rows.mapInArrow(partial(task, "a ticket"), "report binary").explain(extended=True)  # type: ignore[arg-type]
    stage.write_partition = disturbed(None, boom)
    for refused in (url, f"{elsewhere}/table", "s3://key:secret@bucket/table"):
        try:
            write(spark, refused, options)
        except TallymarkError as error:
            show("error", error, getattr(error, "details", ""), error.__cause__, error.__context__)
        else:
            raise AssertionError(f"the write to {refused} was to fail")
    spark.stop()


def say_all(spark: SparkSession) -> None:
    """Let the JVM log all there is, but for Amazon's Java client, by which Spark itself reads S3.

    At DEBUG that one logs the headers it sends, the session token among them.
    """
    spark.sparkContext.setLogLevel("DEBUG")
    log4j: Any = spark.sparkContext._jvm.org.apache.logging.log4j  # type: ignore[union-attr]
    for name in ("software.amazon.awssdk", "org.apache.http"):
        log4j.core.config.Configurator.setLevel(name, log4j.Level.INFO)


def write(spark: SparkSession, url: str, options: StorageOptions) -> tallymark.WriteResult:
    return tallymark.write(
        wide_rows(spark), url, mode="append", partition_by=["part"], tasks=EAGER, options=options, progress=False
    )


def show(what: str, *values: object) -> None:
    for value in values:
        print(what, repr(value), str(value), flush=True)


def keep_tasks_pickle(folder: Path) -> None:
    """Of the function as Spark sends it to executors, and of the ticket. The job's key is stored beside the folder."""
    run_tasks, begun = stage.run_tasks, vars(stage)["begun"]

    def kept(df: Any, ticket: Any, **watchers: Any) -> Any:
        show("ticket", ticket)
        (folder / "ticket.pickle").write_bytes(cloudpickle.dumps(ticket))
        with (folder.parent / "job_keys").open("a") as keys:
            print(ticket.service.job_key.hex(), file=keys)
        return run_tasks(df, ticket, **watchers)

    def kept_task(*task: Any) -> Any:
        sent = begun(*task)
        (folder / "task.pickle").write_bytes(cloudpickle.dumps(sent))
        return sent

    import_module("tallymark.spark_glue.write").run_tasks = kept  # type: ignore[attr-defined]
    stage.begun = kept_task  # type: ignore[attr-defined,assignment]


def outspoken(
    write_partition: Any, folder: Path, ticket: Any, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """The task, with all it logs, and copies of its temporary files as they are in mid file."""
    logging.basicConfig(level=logging.DEBUG, filename=folder / f"task-{os.getpid()}.log", force=True)
    logging.debug("%r opens %r", ticket, open_backend(ticket.url, options=ticket.options))

    def looked_at() -> Iterator[pa.RecordBatch]:
        for number, batch in enumerate(batches):
            if number == 10:
                copy_open_files(folder)
            yield batch

    yield from write_partition(ticket, looked_at())


def copy_open_files(folder: Path) -> None:
    for descriptor in Path("/proc/self/fd").iterdir():
        try:
            if str(descriptor.readlink()).startswith(f"{folder / 'tmp'}/"):
                (folder / f"spooled-{os.getpid()}-{descriptor.name}").write_bytes(descriptor.read_bytes())
        except OSError:
            continue


cloudpickle.register_pickle_by_value(sys.modules[__name__])

if __name__ == "__main__":
    _, chosen_url, another, chosen_folder, told_settings = sys.argv
    run(chosen_url, another, Path(chosen_folder), json.loads(told_settings))
