"""Purpose of each file below ``.hoodie``, derived from its path and the log. Pure."""

import re
from dataclasses import dataclass

from tallymark.engine.timeline.history import History
from tallymark.engine.timeline.instant import FLOOR
from tallymark.engine.timeline.log import BODY_FOLDER, LOG_FOLDER

PARTITION_METADATA = ".hoodie_partition_metadata"

_STAYS = "It stays as long as the table does."


@dataclass(frozen=True, slots=True, kw_only=True)
class Bookkeeping:
    """A file without rows."""

    purpose: str
    instant: str | None = None
    """The instant that it belongs to, with whose end it is deleted."""
    position: int | None = None
    lasting: str | None = None
    """How long it remains, where that does not depend on an instant."""


def bookkeeping(path: str, history: History) -> Bookkeeping | None:
    """Return the purpose of a path; None for a file that is not Tallymark's bookkeeping, or that the log does not
    account for.
    """
    if path.rpartition("/")[2] == PARTITION_METADATA:
        return Bookkeeping(purpose="By it Hudi on Java knows the partition.", lasting=_STAYS)
    for pattern, purpose in _OF_INSTANTS.items():
        if found := re.fullmatch(pattern, path):
            return Bookkeeping(purpose=purpose.format(found["instant"]), instant=found["instant"])
    for pattern, purpose in _LASTING.items():
        if re.fullmatch(pattern, path):
            return Bookkeeping(purpose=purpose, lasting=_STAYS)
    for pattern, (purpose, lasting) in _PASSING.items():
        if re.fullmatch(pattern, path):
            return Bookkeeping(purpose=purpose, lasting=lasting)
    return _projected(path, history) or _logged(path, history)


_OF_INSTANTS = {
    r"\.hoodie/\.temp/(?P<instant>\d{17})/(staged|recut)/.+": "A data file in the making, of instant {}.",
    r"\.hoodie/\.temp/(?P<instant>\d{17})/FILLS": "It shows other writes which small files instant {} is filling.",
    r"\.hoodie/\.temp/(?P<instant>\d{17})/DIRECT": "It says that tasks of instant {} may have put markers themselves.",
    r"\.hoodie/\.temp/(?P<instant>\d{17})/MARKERS\.type": "It says how the markers of instant {} are kept.",
    r"\.hoodie/\.temp/(?P<instant>\d{17})/MARKERS\d+": "Markers of instant {}: files that it may have begun.",
    r"\.hoodie/\.temp/(?P<instant>\d{17})/SERVER\d+": "It keeps numbers for a marker service of instant {}.",
    r"\.hoodie/\.temp/(?P<instant>\d{17})/.+\.marker\.[A-Z]+": "A marker of instant {}, put by a task itself.",
    r"\.hoodie/\.tallymark/open/(?P<instant>\d{17})": "The reservation of instant {}, until all is tidied up.",
    r"\.hoodie/\.tallymark/beat/(?P<instant>\d{17})": "The sign of life of the writer of instant {}.",
    r"\.hoodie/\.tallymark/seal/(?P<instant>\d{17})": "It ends the marking of files by tasks of instant {}.",
}

_LASTING = {
    r"\.hoodie/hoodie\.properties": "What the table is: its columns, its partition columns, its version.",
    rf"\.hoodie/{FLOOR}\.[a-z.]+": "The floor: an empty commit below all instants, so that readers of the Hudi format "
    "take no file for older than the timeline.",
}

_PASSING = {
    r"\.hoodie/\.tallymark/begun/\d{20}": (
        "A writer has begun under this number: by it others see who is open.",
        "It goes with the instant of its writer; if that has died, with the next write after its lease.",
    ),
    r"\.hoodie/\.tallymark/fence/\d{17}/[0-9a-f]+": (
        "A list of names that may be fenced.",
        "'tallymark clean' sweeps the fences, then the list, a day after its instant (CommitSettings.zombie_after_s).",
    ),
    r"\.hoodie/\.tallymark/beat/probe-[0-9a-f]+": (
        "A process reads the store's clock.",
        "It goes at once; if its author has died, with the next clean, or write that finds another one open.",
    ),
    r"\.hoodie/\.tallymark/read/[0-9a-f]+": (
        "The lease of a reader, whose files no clean lets go.",
        "It goes when its reader has ended; if that has died, with the next 'tallymark clean'.",
    ),
    r"\.hoodie/\.tallymark/checkpoint/.+": (
        "It contains the table's state at one position of its log, so that the log need not be read from its start.",
        "Once two newer checkpoints are there it goes with the next; without it nothing is lost but time.",
    ),
    r"\.hoodie/\.tallymark/tmp/.+": (
        "A small object in the making.",
        "It is renamed at once; if its author has died, it goes after an hour.",
    ),
}


def _projected(path: str, history: History) -> Bookkeeping | None:
    found = re.fullmatch(r"\.hoodie/(\d{17})\.[a-z.]+", path)
    decision = history.decision(found[1]) if found else None
    if decision is None or decision[1].kind != "commit":
        return None
    position, entry = decision
    return Bookkeeping(
        purpose=f"It shows the commit of instant {entry.instant} to readers of the Hudi format.",
        position=position,
        lasting=_STAYS,
    )


def _logged(path: str, history: History) -> Bookkeeping | None:
    folder, _, name = path.rpartition("/")
    if folder == LOG_FOLDER and name.isdigit() and 1 <= int(name) <= history.head:
        position = int(name)
        entry = history.entry(position)
        purpose = (
            f"Entry {position} of the commit log, the {entry.kind} of instant {entry.instant}: the log is the table."
        )
        return Bookkeeping(purpose=purpose, position=position, lasting=_STAYS)
    if not path.startswith(f"{BODY_FOLDER}/"):
        return None
    position = next((number for number in range(1, history.head + 1) if history.entry(number).nonce == name), 0)
    if position:
        return Bookkeeping(
            purpose=f"The body of entry {position} of the commit log, which is too large for one small object.",
            position=position,
            lasting=_STAYS,
        )
    return Bookkeeping(
        purpose="The body of an entry that is not in the commit log.",
        lasting="'tallymark clean' drops it once the log has decided its instant by another entry.",
    )
