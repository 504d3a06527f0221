"""A program of this harness in a separate process, with requests and answers as lines of JSON: both ends of it."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, TextIO

from tallymark.backends.errors import TallymarkError


class ChildFailed(TallymarkError):
    """It has ended before it was to; the message holds the last line that it wrote."""


@dataclass(frozen=True, slots=True)
class Child:
    process: subprocess.Popen[str]
    log: Path

    def tell(self, said: Mapping[str, object]) -> None:
        try:
            pipe = _pipe(self.process.stdin)
            pipe.write(json.dumps(said) + "\n")
            pipe.flush()
        except BrokenPipeError:
            raise self._failed() from None

    def answer(self) -> dict[str, Any]:
        """Raises ChildFailed."""
        line = _pipe(self.process.stdout).readline()
        if not line:
            raise self._failed()
        found: dict[str, Any] = json.loads(line)
        return found

    def ask(self, said: Mapping[str, object]) -> dict[str, Any]:
        self.tell(said)
        return self.answer()

    def _failed(self) -> ChildFailed:
        said = self.log.read_text(errors="replace").strip().splitlines()
        return ChildFailed(f"{self.process.args!r} failed: {said[-1] if said else 'it said nothing'}")


@contextmanager
def child(module: str, log: Path) -> Iterator[Child]:
    """The module's program for the block. ``log`` takes what it says on standard error."""
    with log.open("w") as said:
        process = subprocess.Popen(  # noqa: S603 our own program
            [sys.executable, "-W", "ignore", "-m", module],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=said,
            text=True,
        )
    try:
        yield Child(process, log)
    finally:
        process.kill()
        process.communicate()


def _pipe(pipe: IO[str] | None) -> IO[str]:
    assert pipe is not None
    return pipe


def answer(answers: TextIO, fields: Mapping[str, object]) -> None:
    """Write one answer, in the process itself."""
    answers.write(json.dumps(fields) + "\n")
    answers.flush()


def own_stdout() -> TextIO:
    """Return the stream to the parent; whatever else this process and its children print goes to standard error."""
    own = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    return own
