"""A disturbed write as the tests follow it: a program of its own, and the notes that it and its tasks leave."""

import json
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.process import await_that, end_session, members, send, start_program
from tests.system.attempts import Told, told
from tests.system.disturbed_program import NOTES, TABLE


@dataclass(frozen=True, slots=True)
class Disturbed:
    """One write under way. ``driver`` is its process, and the session of all that it has started."""

    driver: int
    folder: Path

    @property
    def table(self) -> Path:
        return self.folder / TABLE

    @property
    def notes(self) -> Path:
        return self.folder / NOTES

    def held(self) -> int:
        """The process of the attempt that is held; waits for it."""
        await_that((self.notes / "held").exists, "an attempt is held")
        return int((self.notes / "held").read_text())

    def release(self) -> Told:
        """Let the held attempt go on; returns what it was told."""
        held = self.held()
        (self.notes / "go").touch()
        try:
            return await_that(lambda: [each for each in self.told() if each.pid == held], "it is told")[0]
        except TimeoutError as error:
            raise TimeoutError(f"{error}; {self._stacks(held)}") from None

    def _stacks(self, held: int) -> str:
        if held not in members(self.driver):
            return f"process {held} is gone"
        send(signal.SIGUSR1, [held])
        read = (self.notes / "stacks").read_text
        return f"process {held} is at\n{await_that(read, 'it says where')}"

    def told(self, *, task: int | None = None) -> list[Told]:
        """What the attempts have noted so far, or those of one task."""
        return [each for each in told(self.notes) if task in (None, each.task)]

    def outcome(self) -> dict[str, Any]:
        """How the write ended; waits for it."""
        await_that((self.notes / "outcome").exists, "the write ends")
        found: dict[str, Any] = json.loads((self.notes / "outcome").read_text())
        return found


@contextmanager
def disturbed_writes(
    master: str, folder: Path, *cases: str, prepare: Callable[[Path], object] | None = None
) -> Iterator[dict[str, Disturbed]]:
    """The program's cases for the block, one after another, each on a table of its own that may be prepared.

    After the block nothing of them lives.
    """
    for case in cases:
        (folder / case / NOTES).mkdir(parents=True)
        if prepare is not None:
            prepare(folder / case / TABLE)
    program = start_program("tests.system.disturbed_program", master, str(folder), *cases)
    try:
        yield {case: Disturbed(program.pid, folder / case) for case in cases}
    finally:
        end_session(program.pid)
        program.wait()
