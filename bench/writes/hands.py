"""The parent's end of a worker: start it, request writes, end it with all processes that it has started."""

import json
import os
import signal
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, Self

from tallymark.backends.errors import TallymarkError
from tallymark.bench.writes.order import Done, Order

END_TIMEOUT_S = 20.0
"""How long a Spark session may take to stop before it is killed."""

LAST_LINES = 12
"""Of a worker's log that are shown when it fails."""


_JAVA_STACK = ("at ", "... ")
"""How its lines begin, which say less than what stands above them."""


class SideFailed(TallymarkError):
    """A side could not do its write; the message holds the end of its log."""


class Hands:
    """A worker for the block. Blocking calls."""

    def __init__(
        self,
        name: str,
        conf: Mapping[str, str],
        environment: Mapping[str, str],
        log: Path,
        python: str,
        module: str = "tallymark.bench.writes.worker",
    ) -> None:
        self.name = name
        self._conf = conf
        self._environment = environment
        self._log = log
        self._python = python
        self._module = module
        self.spark = ""
        """The release of its Spark."""

    def __enter__(self) -> Self:
        with self._log.open("w") as log:
            self._process = subprocess.Popen(  # noqa: S603 our own program
                [self._python, "-W", "ignore", "-m", self._module],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                env={**os.environ, "PYSPARK_PYTHON": self._python, **self._environment},
                start_new_session=True,  # to be ended with its JVM and its workers
            )
        return self

    def begin(self) -> None:
        """Make it start its Spark; several may start concurrently."""
        self._send(json.dumps({"writer": self.name, "conf": dict(self._conf)}))

    def await_session(self) -> None:
        """Until its Spark is there."""
        self.spark = str(self._answer()["spark"])

    def write(self, order: Order) -> Done:
        self._send(order.encode())
        return Done.decode(json.dumps(self._answer()))

    def row_count(self, target: str) -> int:
        self._send(json.dumps({"count": target}))
        return int(self._answer()["rows"])

    def look(self, target: str) -> tuple[int, list[str]]:
        """Rows that its readers see, and the files that these are in."""
        self._send(json.dumps({"look": target}))
        answer = self._answer()
        return int(answer["rows"]), list(answer["files"])

    def __exit__(self, *_: object) -> None:
        try:
            with suppress(BrokenPipeError, subprocess.TimeoutExpired):
                self._pipe(self._process.stdin).close()
                self._process.wait(END_TIMEOUT_S)
        finally:
            with suppress(ProcessLookupError):  # all of them have ended
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
            self._pipe(self._process.stdout).close()

    def _send(self, line: str) -> None:
        try:
            stdin = self._pipe(self._process.stdin)
            stdin.write(line + "\n")
            stdin.flush()
        except BrokenPipeError:
            raise self._failed() from None

    def _answer(self) -> dict[str, Any]:
        line = self._pipe(self._process.stdout).readline()
        if not line:
            raise self._failed()
        answer: dict[str, Any] = json.loads(line)
        return answer

    def _failed(self) -> SideFailed:
        said = self._log.read_text(errors="replace").splitlines()
        lines = [line for line in said if line.strip() and not line.lstrip().startswith(_JAVA_STACK)]
        return SideFailed(f"the side {self.name!r} failed: {' | '.join(lines[-LAST_LINES:])}")

    @staticmethod
    def _pipe(pipe: IO[str] | None) -> IO[str]:
        assert pipe is not None
        return pipe
