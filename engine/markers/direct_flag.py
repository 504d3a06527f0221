"""The flag of direct markers: ``.hoodie/.temp/<T>/DIRECT``, put before the first marker that a task of a job with a
service puts itself.

Tasks put their own markers only while the service of their job is unreachable, and report nothing. To spare the job a
listing of its folder, a task puts this object before its marker: one get of a known name shows whether any task did.

No marker that counts is missed. Of the first task and the job one puts the object, with different content. Where the
job is first, every task finds that, and puts no marker. Where a task is first, the job puts its seal and reads all
markers: an acked task has put its marker before the seal, since it has checked after its put that the seal was absent.
Where staging is closed first, no file of a later task can be published, and the job only reads whether the object is
there. The folder is deleted only after the log has decided the instant: a task that puts the object then finds that
entry when it checks for the seal, and the job finds it instead of winning its own.
"""

from contextlib import suppress

from tallymark.backends.contract import Backend, exists
from tallymark.backends.errors import AlreadyExists, NotFound
from tallymark.engine.errors import Sealed
from tallymark.engine.markers.flush import until_answered
from tallymark.engine.markers.segment import marker_folder
from tallymark.engine.settings import MarkerSettings

CLOSED = b"closed"
"""Content of the object that a job has put."""


def flag_path(instant: str) -> str:
    return f"{marker_folder(instant)}/DIRECT"


class DirectFlag:
    """The flag of one instant. One process puts it once, for all of its tasks."""

    def __init__(self) -> None:
        self._is_up = False

    async def put(self, backend: Backend, instant: str) -> None:
        """Return when the flag survives a crash.

        Raises:
            Sealed: the job has closed it.
            FlushFailed: storage did not accept it.
        """
        if not self._is_up:
            settings, path = MarkerSettings(kind="direct"), flag_path(instant)
            await until_answered(lambda: _put_flag(backend, path), settings, path)
            self._is_up = True


async def _put_flag(backend: Backend, path: str) -> None:
    try:
        await backend.put_new(path, b"")
    except AlreadyExists:
        with suppress(NotFound):  # deleted since: the instant is over, which the check for the seal shows
            if await backend.get(path) == CLOSED:
                raise Sealed(f"{path}: the instant takes no more markers: it is being committed") from None


async def is_flagged(backend: Backend, instant: str) -> bool:
    """Return whether a task may have put a marker itself that counts. To be called when no file can be published any
    more.
    """
    return await exists(backend, flag_path(instant))


async def close_direct(backend: Backend, instant: str) -> bool:
    """Refuse every task that has not put a marker itself yet. Return False where one has, or may have."""
    try:
        await backend.put_new(flag_path(instant), CLOSED)
    except AlreadyExists:
        with suppress(NotFound):
            return await backend.get(flag_path(instant)) == CLOSED  # by an earlier put, whose answer is missing
        return False
    return True
