"""Names of data files: ``<file id>_<task>-<stage>-<attempt>_<instant>.parquet``.

Readers of the Hudi format split such a name at its underscores; the middle part is Hudi's write token.
"""

import re
from uuid import uuid4

from tallymark.engine.errors import CorruptObject
from tallymark.engine.timeline.instant import parse_instant

_NAME = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}-0_\d+-\d+-\d+_(\d{17})\.parquet", re.ASCII)


def new_file_name(*, instant: str, task: int, stage: int, attempt: int) -> str:
    """Return a name that no other file has or will have: its file id is fresh, and never reused."""
    assert min(task, stage, attempt) >= 0
    return f"{uuid4()}-0_{task}-{stage}-{attempt}_{instant}.parquet"


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
