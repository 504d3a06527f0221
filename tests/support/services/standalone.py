"""A standalone Spark cluster out of PySpark's own jars: a master and two workers that look like two hosts."""

import os
import re
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pyspark

from tests.support.process import await_that, end_session

HOSTS = ("127.0.0.2", "127.0.0.3")
"""Spark takes each address for a host of its own, and speculates on another host only."""

_HOME = Path(pyspark.__file__).parent

_DAEMON = {
    "SPARK_HOME": str(_HOME),
    "SPARK_DAEMON_MEMORY": "256m",
    "SPARK_DAEMON_JAVA_OPTS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Dspark.master.rest.enabled=false",
    "SPARK_NO_DAEMONIZE": "1",
}


@contextmanager
def standalone_cluster(folder: Path) -> Iterator[str]:
    """The master's URL, once both workers are registered; logs and work lie in the folder.

    Each worker has room for two executors of one core and 512 MB, so that two drivers fit, or a replacement. No
    port is fixed: each process takes a free one. After the block nothing of the cluster lives, executors included.
    """
    log = folder / "master.log"
    with ExitStack() as running:
        running.enter_context(_daemon("master.Master", "--port", "0", host="127.0.0.1", log=log))
        url = await_that(lambda: _found(r"Starting Spark master at (\S+)", log), f"a master, see {log}")[0]
        for host in HOSTS:
            limits = ("--cores", "2", "--memory", "1g", "--work-dir", str(folder / host))
            running.enter_context(_daemon("worker.Worker", *limits, url, host=host, log=folder / f"{host}.log"))
        await_that(lambda: len(_found(r"Registering worker (\S+)", log)) == len(HOSTS), f"two workers, see {log}")
        yield url


@contextmanager
def _daemon(name: str, *arguments: str, host: str, log: Path) -> Iterator[None]:
    """One of Spark's own servers, in a session of its own for the time of the block."""
    command = [str(_HOME / "bin/spark-class"), f"org.apache.spark.deploy.{name}"]
    with log.open("wb") as output:
        process = subprocess.Popen(
            [*command, "--host", host, "--webui-port", "0", *arguments],
            env={**os.environ, **_DAEMON, "SPARK_LOCAL_IP": host, "SPARK_LOCAL_DIRS": str(log.parent)},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    try:
        yield
    finally:
        end_session(process.pid)
        process.wait()


def _found(pattern: str, log: Path) -> list[str]:
    return re.findall(pattern, log.read_text(errors="replace"))
