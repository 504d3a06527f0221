"""A new object on its way to its name on HDFS, and what became of it.

Scratch files have names of their own, so where one is found tells the outcome of a rename whose answer was lost: the
file is renamed out of the way. Found there, it has not come to its name and never will; found nowhere, it has.
"""

import secrets
import threading
import time
from contextlib import suppress
from typing import Protocol

from tallymark.backends.errors import AlreadyExists, BackendError, NotFound, Unavailable

VOID = ".void"

TRUSTED_S = 1800.0
"""How long after it was written a missing scratch file tells anything: half the age at which others sweep it."""

WAIT_S = 5.0
"""How long an attempt waits for an earlier one, which goes on in its thread after nobody waits for it."""


class Place(Protocol):
    """What an arrival needs of its store, in absolute paths. Each call may raise any BackendError."""

    def write_scratch(self, scratch: str, data: bytes) -> None: ...

    def bring(self, source: str, target: str) -> None: ...

    def exists(self, absolute: str) -> bool: ...

    def discard(self, scratch: str) -> None: ...


class Arrival:
    """One put_new. ``attempt`` blocks, and is called again after Unavailable."""

    def __init__(self, place: Place, scratch_folder: str, target: str, data: bytes) -> None:
        self._place = place
        self._folder = scratch_folder
        self._target = target
        self._data = data
        self._turn = threading.Lock()
        self._unclear: str | None = None
        """The scratch file whose rename has begun, and whose outcome is not known."""
        self._written_s = 0.0
        self._has_arrived = False
        self._is_abandoned = False

    def attempt(self) -> None:
        """Return when the object is there.

        Raises:
            AlreadyExists: another's is.
            Unavailable: it is not known yet; another attempt finds out.
        """
        if not self._turn.acquire(timeout=WAIT_S):
            raise Unavailable(f"{self._target}: an earlier attempt is still under way")
        try:
            if self._unclear is not None:
                self._find_out(self._unclear)
            if not self._has_arrived:
                self._try()
        finally:
            self._turn.release()

    def abandon(self) -> None:
        """No attempt that is still under way begins its rename any more."""
        self._is_abandoned = True

    def _try(self) -> None:
        scratch = f"{self._folder}/{secrets.token_hex(12)}"
        try:
            self._place.write_scratch(scratch, self._data)
            if self._is_abandoned:
                raise Unavailable(f"{self._target}: nobody waits for it any more")
        except BaseException:
            self._place.discard(scratch)
            raise
        self._unclear, self._written_s = scratch, _now_s()
        try:
            self._place.bring(scratch, self._target)
        except NotFound:  # the vendor's library repeats by itself, and then finds that its first rename has happened
            self._find_out(scratch)
            if not self._has_arrived:
                raise Unavailable(f"{self._target}: its scratch file has vanished") from None
        except Unavailable:
            raise
        except BackendError:
            self._unclear = None
            self._place.discard(scratch)
            raise
        self._has_arrived = True

    def _find_out(self, scratch: str) -> None:
        try:
            self._look(scratch)
        except Unavailable:
            raise
        except BackendError as refusal:  # of the question, as where a ticket is over by now; not of the object
            raise Unavailable(f"{self._target}: whether it has arrived may not be asked: {refusal}") from refusal

    def _look(self, scratch: str) -> None:
        void = scratch + VOID
        with suppress(NotFound, AlreadyExists):
            self._place.bring(scratch, void)
        if self._place.exists(scratch):
            raise Unavailable(f"{self._target}: it is not known yet whether it has arrived")
        if self._place.exists(void):
            self._unclear = None
            self._place.discard(void)
        elif _now_s() - self._written_s < TRUSTED_S:
            self._has_arrived = True
        else:
            raise Unavailable(f"{self._target}: too long ago to find out whether it has arrived")


def _now_s() -> float:
    """Seconds that go on while the machine sleeps."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)
