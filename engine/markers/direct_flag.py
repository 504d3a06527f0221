"""The flag of direct markers: ``.hoodie/.temp/<T>/DIRECT``, put before the first marker that a task of a job with a
service puts itself.

Tasks put their own markers only while the service of their job is unreachable, and report nothing. To spare the job a
listing of its folder, a task puts this object before its marker: one get of a known name shows whether any task did.

No marker that counts is missed. An acked task has put the flag, then its marker, and has then checked that the job's
seal was absent. The job puts its seal and then reads the flag. The task's check preceded the seal, and its flag
preceded the check: so the job finds the flag, unless the folder was deleted in between. The folder is deleted only
after the log has decided the instant, and then the job finds that entry instead of winning its own.
"""

from tallymark.backends.contract import Backend, exists
from tallymark.engine.markers.flush import flush
from tallymark.engine.markers.segment import marker_folder
from tallymark.engine.markers.statistics import MarkerCounts
from tallymark.engine.settings import MarkerSettings


def flag_path(instant: str) -> str:
    return f"{marker_folder(instant)}/DIRECT"


class DirectFlag:
    """The flag of one instant. One process puts it once, for all of its tasks."""

    def __init__(self) -> None:
        self._is_up = False

    async def put(self, backend: Backend, instant: str) -> None:
        """Return when the flag survives a crash. Raises FlushFailed."""
        if not self._is_up:
            await flush(backend, flag_path(instant), b"", MarkerSettings(kind="direct"), MarkerCounts())
            self._is_up = True


async def is_flagged(backend: Backend, instant: str) -> bool:
    """Return whether a task may have put a marker itself that counts. To be called after the seal was put."""
    return await exists(backend, flag_path(instant))
