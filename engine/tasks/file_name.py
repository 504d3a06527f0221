"""Names of data files: ``<file id>_<task>-<stage>-<attempt>_<instant>.parquet``.

Readers of the Hudi format split such a name at its underscores; the middle part is Hudi's write token.
"""

import re
from uuid import uuid4

from tallymark.engine.errors import CorruptObject, InvalidRequest
from tallymark.engine.timeline.instant import parse_instant

_NAME = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}-0_\d+-\d+-\d+_(\d{17})\.parquet", re.ASCII)


def new_file_name(*, instant: str, task: int, stage: int, attempt: int) -> str:
    """Return a name that no other file has or will have: its file id is fresh, and never reused."""
    assert min(task, stage, attempt) >= 0
    return f"{uuid4()}-0_{task}-{stage}-{attempt}_{instant}.parquet"


def is_file_of(path: str, instant: str) -> bool:
    """Return whether a path below the table is that of a data file which this instant wrote, or may write."""
    found = None if path.startswith(".hoodie/") else _NAME.fullmatch(path.rpartition("/")[2])
    return found is not None and found[1] == instant


def check_is_file_of(instant: str, path: str) -> None:
    """Check a name that a task requests a marker for. Raises InvalidRequest unless it is a data file of the instant."""
    if not is_file_of(path, instant):
        raise InvalidRequest(
            f"marker {path!r}: not a data file of instant {instant}; the job's end deletes what is marked and not "
            "reported, so a job marks only names of the form <file id>_<task>-<stage>-<attempt>_<instant>.parquet"
        )


def instant_of(name: str) -> str | None:
    """Return the instant that wrote the file of this name (without directory); None for a name of another form."""
    found = _NAME.fullmatch(name)
    if not found:
        return None
    try:
        parse_instant(found[1])
    except CorruptObject:
        return None
    return found[1]
