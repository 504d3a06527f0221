"""The flag of direct markers: ``.hoodie/.temp/<T>/DIRECT``, put before the first one that a task puts beside a service.

Tasks put their own markers only while the service of their job is out of reach, and without a report. So that the job
need not list its folder to learn that there are none, a task puts this object before its marker. Its name is known: one
get shows whether it exists.

No marker that counts is missed. A task that is acked has put the flag, then its marker, and then has looked for the
seal of the job, and found none. The job puts its seal, and then looks for the flag. The task's look came before the
seal, and the flag before that check: the job finds it, unless the folder was dropped in between. That is done
only once the log has decided the instant, and then the job finds that entry in place of winning its own.
"""

from tallymark.backends.contract import Backend
from tallymark.backends.errors import NotFound
from tallymark.engine.markers.flush import flush
from tallymark.engine.markers.segment import marker_folder
from tallymark.engine.markers.statistics import MarkerCounts
from tallymark.engine.settings import MarkerSettings


def flag_path(instant: str) -> str:
    return f"{marker_folder(instant)}/DIRECT"


class DirectFlag:
    """The flag of one instant, as one process puts it: once, whichever of its tasks needs it first."""

    def __init__(self) -> None:
        self._is_up = False

    async def put(self, backend: Backend, instant: str) -> None:
        """On return it survives a crash. Raises FlushFailed."""
        if not self._is_up:
            await flush(backend, flag_path(instant), b"", MarkerSettings(kind="direct"), MarkerCounts())
            self._is_up = True


async def is_flagged(backend: Backend, instant: str) -> bool:
    """Return False if no task has put a marker itself that may count. To be called after the seal was put."""
    try:
        await backend.get(flag_path(instant))
    except NotFound:
        return False
    return True
