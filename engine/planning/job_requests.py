"""Number of object-store requests of a job, by class: one formula, tested against counts on S3.

Owns: what the library asks for on a store that answers at once. Does not own: what depends on how long tasks take: the
further segments of markers, a beat every ten seconds, and repeats; and of checkpoints the parts that sizing and
overwrites read of a large table, and the new one that is left every so many entries.
"""

from dataclasses import dataclass
from typing import Self

from tallymark.backends.meter import PriceList, RequestClass
from tallymark.engine.timeline.log import BODY_BYTES, PROBE_AHEAD, READ_AHEAD

NAMES_A_DELETE = 1_000
"""On S3. GCS takes objects one by one."""

FILE_ENTRY_BYTES = 100
"""Of a file in a log entry, its partition path aside: a name of some 75 bytes, four numbers and their frames."""

PAGE_COUNT = 1_000
"""Entries in a page of a listing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestCounts:
    put: int = 0
    get: int = 0
    head: int = 0
    list: int = 0
    delete: int = 0

    def __add__(self, other: Self) -> "RequestCounts":
        return RequestCounts(**{name: getattr(self, name) + getattr(other, name) for name in self.__slots__})

    def cost(self, prices: PriceList) -> float:
        """In ``prices.currency``, without the bytes."""
        return sum(prices.requests(request_class, getattr(self, request_class)) for request_class in _CLASSES)


_CLASSES: tuple[RequestClass, ...] = ("put", "get", "head", "list", "delete")


_FLOOR = RequestCounts(put=3, head=3)
"""The floor of the Hudi timeline is put again, and found to be there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobShape:
    """What of a job decides on its requests."""

    log_entries: int
    """Before it."""
    has_commits: bool
    """Among them: else the job shows the floor of the Hudi timeline, too."""
    is_created: bool
    """The table, by this job."""
    files: int
    new_partitions: int
    """That never held a file before."""
    deleted_files: int
    """That are deleted right after the commit."""
    filled_files: int = 0
    """Small ones that tasks read and write once more."""
    is_sized: bool = False
    """Its files are planned."""
    may_fill: bool = False
    """Then it looks for what others are filling."""
    entry_bytes: int = 0
    """Of the job's own entry in the log."""
    checkpoint: int = 0
    """The position from which the log is read on; 0 where it is read from the beginning."""
    names_a_delete: int = NAMES_A_DELETE


def names_a_delete(url: str) -> int:
    """Of objects that the store at a URL deletes by one request."""
    return 1 if url.startswith("gs:") else NAMES_A_DELETE


def entry_bytes(files: int, partition: str) -> int:
    """Return what so many files of a partition take in the job's entry, to a few bytes."""
    return files * (len(partition.encode()) + FILE_ENTRY_BYTES)


def job_requests(shape: JobShape) -> RequestCounts:
    """From the call that begins the job to its end."""
    return begin_requests(shape) + sizing_requests(shape) + task_requests(shape) + commit_requests(shape)


def begin_requests(shape: JobShape) -> RequestCounts:
    """The table is found; the log is read; a number and an instant are taken; those of dead writers are looked for."""
    # Puts: number, beat, kind of markers, reservation. Gets: properties, the end of the second reading of the log, the
    # number that comes next and the one that the newest entry tells, the newest projection.
    is_looked_for = shape.has_commits and shape.log_entries > shape.checkpoint
    found = RequestCounts(put=4, get=3 + is_looked_for) + log_requests(shape)
    if shape.log_entries:
        found += RequestCounts(get=1)
    else:  # whether a log has been lost; who is open of those that took no numbers; one's own reservation and number
        found += RequestCounts(get=3, list=4)
    if not shape.has_commits:
        found += _FLOOR
    if shape.is_created:  # all is listed; the trial of put-if-absent: one loses and is read back; properties, the floor
        found += RequestCounts(list=1, put=2 + 1 + 3, head=1, delete=1)
    else:
        found += RequestCounts(get=1)  # whether there is a metadata table
    return found


def log_requests(shape: JobShape) -> RequestCounts:
    """Of the first reading of the log: whether it has a checkpoint, then all entries, or those since."""
    if not shape.checkpoint:
        return RequestCounts(get=1 + shape.log_entries + 1, list=1 + shape.log_entries // PAGE_COUNT)
    later, window = shape.log_entries - shape.checkpoint - PROBE_AHEAD, PROBE_AHEAD
    gets = 2 + 1 + window  # the pointer, its manifest; the entry at its position, and those ahead
    while later >= 0:
        window = min(2 * window, READ_AHEAD)
        gets, later = gets + window, later - window
    return RequestCounts(get=gets)


def sizing_requests(shape: JobShape) -> RequestCounts:
    """The log is read to its end; who has begun since is looked for, who may be filling files; and others are told."""
    if not shape.is_sized:
        return RequestCounts()
    is_listed = shape.may_fill and not shape.log_entries
    return RequestCounts(get=1 + shape.may_fill, list=int(is_listed), put=int(shape.filled_files > 0))


def task_requests(shape: JobShape) -> RequestCounts:
    """Return a put a data file, and what the first marker costs the service: a claim, a segment.

    A file that is filled is read, by one get.
    """
    return RequestCounts(put=shape.files + 2, get=shape.filled_files) if shape.files else RequestCounts()


def commit_requests(shape: JobShape) -> RequestCounts:
    """From the call of ``commit`` to the end of the job."""
    # Seal, entry, three files of the Hudi timeline; the flag of direct markers, and further commits before and after.
    always = RequestCounts(put=5, get=3, delete=3)
    floor = RequestCounts() if shape.has_commits else _FLOOR
    return (
        always
        + floor
        + RequestCounts(
            put=shape.new_partitions + (shape.entry_bytes > BODY_BYTES),
            delete=-(-shape.deleted_files // shape.names_a_delete),
        )
    )
