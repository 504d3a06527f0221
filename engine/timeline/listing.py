"""Listing of a table's bookkeeping: the names of the log, checkpoints, projected commits and open writers, by one LIST.

``.hoodie`` has a bounded number of objects (``maintenance.archive``), beside the markers of running jobs. Data folders
are not listed.
"""

import re
from dataclasses import dataclass, field

from tallymark.backends.contract import Backend
from tallymark.engine.timeline.reservation import HEARTBEAT_FOLDER, OPEN_FOLDER

HOODIE = ".hoodie"

_OPEN = re.compile(rf"(?:{re.escape(OPEN_FOLDER)}/|{re.escape(HEARTBEAT_FOLDER)}/|\.hoodie/\.temp/)(\d{{17}})(?:/.*)?")
_BODY = re.compile(r"\.hoodie/\.tallymark/body/(\d{17})/[0-9a-f]+")
_LOG = re.compile(r"\.hoodie/\.tallymark/log/(\d{20})")
_MANIFEST = re.compile(r"\.hoodie/\.tallymark/checkpoint/(\d{20}-[0-9a-f]+)")
_TIMELINE = re.compile(r"\.hoodie/(\d{17})\.(?:(?:commit|replacecommit)(?:\.requested|\.inflight)?|inflight)")
_COMPLETED = re.compile(r"\.hoodie/(\d{17})\.(commit|replacecommit)")


@dataclass(frozen=True, slots=True)
class Listing:
    """What one LIST of ``.hoodie`` has shown. Each object whose put had returned before the LIST is in it."""

    numbers: list[int] = field(default_factory=list)
    """Positions of log entries, ascending."""
    manifests: list[str] = field(default_factory=list)
    """Names of checkpoint manifests, the newest first."""
    open: set[str] = field(default_factory=set)
    """Instants that are reserved, or have a heartbeat or markers: their reservation may be lost."""
    bodies: dict[str, list[str]] = field(default_factory=dict)
    """By instant, the paths of bodies of its entries."""
    completed: dict[str, str] = field(default_factory=dict)
    """By instant, the path of the file that completes it in the Hudi timeline."""
    timeline: dict[str, list[str]] = field(default_factory=dict)
    """By instant, the paths of all its files in the Hudi timeline."""

    @property
    def newest(self) -> int:
        """The greatest position of a log entry; 0 where there is none."""
        return self.numbers[-1] if self.numbers else 0


async def read_listing(backend: Backend) -> Listing:
    """Return what a LIST of ``.hoodie`` shows."""
    found = Listing()
    async for entry in backend.list(HOODIE):
        if logged := _LOG.fullmatch(entry.path):
            found.numbers.append(int(logged[1]))
        elif manifest := _MANIFEST.fullmatch(entry.path):
            found.manifests.append(manifest[1])
        elif reserved := _OPEN.fullmatch(entry.path):
            found.open.add(reserved[1])
        elif body := _BODY.fullmatch(entry.path):
            found.bodies.setdefault(body[1], []).append(entry.path)
        elif projected := _TIMELINE.fullmatch(entry.path):
            found.timeline.setdefault(projected[1], []).append(entry.path)
            if _COMPLETED.fullmatch(entry.path):
                found.completed[projected[1]] = entry.path
    found.numbers.sort()
    found.manifests.sort(reverse=True)
    return found
