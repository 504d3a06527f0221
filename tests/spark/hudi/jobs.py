"""Hudi's own writers for tests: a Spark that runs them, the service that takes their markers, and a table's rows."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote
from urllib.request import urlopen

import pyspark
import pytest

from tallymark.bench.peers.timeline_server import HUDI_JARS
from tests.support.jars import QUICK_START, jars
from tests.support.ports import free_port
from tests.support.process import ROOT

MARKS = [
    pytest.mark.spark,
    pytest.mark.every_spark,
    pytest.mark.skipif(not pyspark.__version__.startswith("3.5."), reason=f"{HUDI_JARS[0]} is for Spark 3.5"),
]

GUIDE = ROOT / "docs/hudi.md"

LANDS = ("A b%", "x=1/y=2", "ö日 #", "a?b&c+d", "it's *|$", "[x]{y}\\=~")
"""Partitions, by names that Hudi reads and writes as they are with its own direct markers."""

ENCODED_LANDS = (*LANDS, "a:b", "%20", "A%2Fb")
"""Those for which it has to encode them: the first would be an error, and the others be read as ' ' and 'A/b'."""


class Failed(Exception):
    """The Spark program answers with an error."""


class Hudi:
    """Hudi's own writers, in a process with a Spark (``program``)."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process

    def do(self, command: str, *arguments: object) -> Any:
        """Run one of the program's commands. Raises Failed with the error that it ends with."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps([command, *arguments]) + "\n")
        self._process.stdin.flush()
        answers = (line for line in self._process.stdout if line.startswith("ANSWER "))
        answer = json.loads(next(answers, 'ANSWER {"error": "it has ended"}').removeprefix("ANSWER "))
        if "error" in answer:
            raise Failed(answer["error"])
        return answer["answer"]


@contextmanager
def hudi_writers(folder: Path, *, more_jars: Sequence[Path] = (), **conf: str) -> Iterator[Hudi]:
    paths = ",".join(map(str, [*jars(HUDI_JARS), *more_jars]))
    settings = {"spark.jars": paths, "spark.driver.extraJavaOptions": QUICK_START, **conf}
    command = [sys.executable, "-W", "ignore", "-m", "tests.spark.hudi.program"]
    with (folder / "spark.log").open("w") as log:
        process = subprocess.Popen(
            [*command, *(f"{name}={value}" for name, value in settings.items())],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        )
    with process:
        yield Hudi(process)
        assert process.stdin is not None
        process.stdin.close()


class Service:
    """``tallymark serve`` on a port that stays its own over restarts."""

    def __init__(self, secret: Path, *options: str) -> None:
        self.port = free_port()
        self._secret = secret
        self._options = options
        self._process: subprocess.Popen[str] | None = None

    def start(self) -> None:
        """Return when it listens."""
        command = [sys.executable, "-c", "from tallymark.cli import main; main()", "serve", "--port", "0"]
        command += ["--task-port", "0", "--secret", str(self._secret), "--hudi-port", str(self.port), *self._options]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        assert any(line.startswith("Tables below") for line in self._process.stdout), "it does not start"

    def kill(self) -> None:
        """SIGKILL; on return it is gone."""
        assert self._process is not None
        assert self._process.poll() is None, "it has ended by itself"
        self._process.kill()
        self._process.communicate()

    def markers(self, table: str, instant: str) -> set[str]:
        """Return the data files that have a marker, as Hudi's client requests them."""
        folder = quote(f"{table}/.hoodie/.temp/{instant}", safe="")
        with urlopen(f"http://127.0.0.1:{self.port}/v1/hoodie/marker/all?markerdirpath={folder}") as answer:
            return {name.partition(".marker.")[0] for name in json.load(answer)}


@contextmanager
def served(root: str | Path, *options: str, secret: Path) -> Iterator[Service]:
    service = Service(secret, "--root", str(root), *options)
    service.start()
    try:
        yield service
    finally:
        service.kill()


def settings_of_the_guide(port: int) -> dict[str, str]:
    block = re.search(r"```properties\n(.+?)```", GUIDE.read_text(), re.DOTALL)
    assert block
    lines = [line.replace("=26754", f"={port}") for line in block[1].splitlines()]
    return dict(line.split("=", 1) for line in lines)


def of_table(version: str, metadata: str) -> dict[str, str]:
    """Return options of a write that have nothing to do with markers. Partitions are encoded in version 9."""
    return {
        "hoodie.table.name": "t",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.partitionpath.field": "land",
        "hoodie.datasource.write.precombine.field": "at",
        "hoodie.datasource.write.hive_style_partitioning": "true",
        "hoodie.datasource.write.partitionpath.urlencode": "true" if version == "9" else "false",
        "hoodie.write.table.version": version,
        "hoodie.metadata.enable": metadata,
        "hoodie.bulkinsert.sort.mode": "NONE",
        "hoodie.parquet.bloom.filter.enabled": "false",  # 400 kB per file
        "hoodie.keep.min.commits": "100",  # the files of archived instants would seem stray
        "hoodie.keep.max.commits": "120",
        **{f"hoodie.{each}.shuffle.parallelism": "4" for each in ("insert", "upsert", "bulkinsert", "delete")},
    }


@dataclass
class Model:
    """A table that is written by a Hudi, and the rows that it must have."""

    hudi: Hudi
    path: str
    options: Mapping[str, str]
    rows: dict[int, int] = field(default_factory=dict)
    """Value of each id."""
    writes: int = 0

    @property
    def lands(self) -> Sequence[str]:
        is_encoded = self.options["hoodie.datasource.write.partitionpath.urlencode"] == "true"
        return ENCODED_LANDS if is_encoded else LANDS

    def write(self, operation: str, *ids: int, fails_at: int = -1, tasks: int = 4) -> None:
        """Write a range of ids. The job fails at the row of ``fails_at``. Raises Failed."""
        self.writes += 1
        options = {**self.options, "hoodie.datasource.write.operation": operation}
        self.hudi.do("write", self.path, options, ids, self.writes, self.lands, tasks, fails_at)
        if operation == "insert_overwrite":
            replaced = {self._land(each) for each in range(*ids)}
            self.rows = {each: value for each, value in self.rows.items() if self._land(each) not in replaced}
        for each in range(*ids):
            if operation == "delete":
                self.rows.pop(each, None)
            else:
                self.rows[each] = each * self.writes

    def check_rows(self) -> None:
        """Assert that Hudi reads these rows in each partition: their number and the sum of their values."""
        expected = dict[str, list[int]]()
        for each, value in self.rows.items():
            of_land = expected.setdefault(self._land(each), [0, 0])
            of_land[0] += 1
            of_land[1] += value
        assert self.hudi.do("read", self.path) == expected

    def committed(self) -> list[str]:
        """Return the files that Hudi's completed timeline names."""
        found: list[str] = self.hudi.do("committed", self.path)
        return found

    def _land(self, each: int) -> str:
        return self.lands[each % len(self.lands)]
