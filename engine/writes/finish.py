"""What remains to be done once the log has decided an instant. Anybody may do it, any number of times."""

from tallymark.backends.events import EventLog
from tallymark.engine.markers.segment import marker_folder
from tallymark.engine.timeline.lease import beat_path
from tallymark.engine.timeline.properties import TableProperties
from tallymark.engine.timeline.reservation import OPEN_FOLDER
from tallymark.engine.timeline.seal import seal_path
from tallymark.engine.writes.handle import TableHandle
from tallymark.engine.writes.project import project

_events = EventLog(__name__)


async def finish(handle: TableHandle, properties: TableProperties, instant: str) -> None:
    """Complete the projection, delete what the entry replaced, then what the instant has left; its reservation last."""
    decision = handle.log.history.decision(instant)
    assert decision is not None, "an open instant is rolled back, not finished"
    position, entry = decision
    await project(handle, properties, position)
    await handle.backend.delete([file.path for file in entry.removed])
    await drop_bookkeeping(handle, instant)
    _events.info("instant.finished", instant=instant, deleted=len(entry.removed))


async def drop_bookkeeping(handle: TableHandle, instant: str) -> None:
    """Delete markers, seal and beat, then the reservation: until then somebody will come back for the rest."""
    backend = handle.backend
    await backend.close_staging(staging_folder(instant))
    await backend.delete([entry.path async for entry in backend.list(marker_folder(instant))])
    await backend.delete([seal_path(instant), beat_path(instant)])
    await backend.delete([f"{OPEN_FOLDER}/{instant}"])


def staging_folder(instant: str) -> str:
    return f"{marker_folder(instant)}/staged"
