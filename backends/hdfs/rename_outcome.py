"""Put-if-absent on HDFS by a rename, and the outcome of a rename whose answer was lost.

Scratch files have unique names, so the place of one shows the outcome: the attempt renames it to a void name. If the
file is then at the void name, it has not reached its target and never will. If it is nowhere, it has reached it.
"""

import secrets
import threading
import time
from contextlib import suppress
from typing import Protocol

from tallymark.backends.errors import AlreadyExists, BackendError, NotFound, Unavailable

VOID = ".void"

TRUSTED_S = 1800.0
"""How long after its write a missing scratch file is evidence: half the age at which other writers sweep it."""

WAIT_S = 5.0
"""How long an attempt waits for an earlier one, whose thread continues after its caller has stopped waiting."""


class Files(Protocol):
    """What a put-if-absent needs of its store, in absolute paths. Each call may raise any BackendError."""

    def write_scratch(self, scratch: str, data: bytes) -> None: ...

    def rename(self, source: str, target: str) -> None: ...

    def exists(self, absolute: str) -> bool: ...

    def discard(self, scratch: str) -> None: ...


class RenameOutcome:
    """One put_new. ``attempt`` blocks, and is called again after Unavailable."""

    def __init__(self, files: Files, scratch_folder: str, target: str, data: bytes) -> None:
        self._files = files
        self._folder = scratch_folder
        self._target = target
        self._data = data
        self._attempting = threading.Lock()
        self._unclear: str | None = None
        """The scratch file whose rename has started, and whose outcome is unknown."""
        self._written_s = 0.0
        self._is_renamed = False
        self._is_abandoned = False

    def attempt(self) -> None:
        """Return when the object has its name.

        Raises:
            AlreadyExists: another writer's object has the name.
            Unavailable: the outcome is unknown; a further attempt resolves it.
        """
        if not self._attempting.acquire(timeout=WAIT_S):
            raise Unavailable(f"{self._target}: an earlier attempt is still in flight")
        try:
            if self._unclear is not None:
                self._resolve(self._unclear)
            if not self._is_renamed:
                self._try()
        finally:
            self._attempting.release()

    def abandon(self) -> None:
        """Let no attempt in flight start its rename."""
        self._is_abandoned = True

    def _try(self) -> None:
        scratch = f"{self._folder}/{secrets.token_hex(12)}"
        try:
            self._files.write_scratch(scratch, self._data)
            if self._is_abandoned:
                raise Unavailable(f"{self._target}: the caller has given up; the put was abandoned")
        except BaseException:
            self._files.discard(scratch)
            raise
        self._unclear, self._written_s = scratch, _now_s()
        try:
            self._files.rename(scratch, self._target)
        except NotFound:  # hdfs-native retries by itself, and then finds that its first rename has happened
            self._resolve(scratch)
            if not self._is_renamed:
                raise Unavailable(f"{self._target}: its scratch file is missing") from None
        except Unavailable:
            raise
        except BackendError:
            self._unclear = None
            self._files.discard(scratch)
            raise
        self._is_renamed = True

    def _resolve(self, scratch: str) -> None:
        """Find the outcome of the rename. Raises Unavailable."""
        try:
            self._check_place(scratch)
        except Unavailable:
            raise
        except BackendError as refusal:  # refuses the check, for example after a ticket has expired; not the object
            raise Unavailable(f"{self._target}: outcome of its rename unknown: {refusal}") from refusal

    def _check_place(self, scratch: str) -> None:
        void = scratch + VOID
        with suppress(NotFound, AlreadyExists):
            self._files.rename(scratch, void)
        if self._files.exists(scratch):
            raise Unavailable(f"{self._target}: outcome of its rename unknown: the scratch file is still there")
        if self._files.exists(void):
            self._unclear = None
            self._files.discard(void)
        elif _now_s() - self._written_s < TRUSTED_S:
            self._is_renamed = True
        else:
            raise Unavailable(f"{self._target}: outcome of its rename unknown: it is more than {TRUSTED_S:g} s old")


def _now_s() -> float:
    """Return seconds of a clock that continues while the machine sleeps."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)
