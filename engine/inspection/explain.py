"""Facts about one file of a table: the log first, then storage about this file only.

A path below ``.hoodie`` is a bookkeeping file: the path and the log contain its purpose.
"""

import re
from collections.abc import Iterable
from math import isfinite
from urllib.parse import unquote

from tallymark.backends.contract import Backend, check_path, exists
from tallymark.backends.errors import InvalidPath
from tallymark.engine.errors import InvalidRequest
from tallymark.engine.inspection.explain_text import Bookkeeping, BookkeepingFacts, Explanation, FileFacts, explained
from tallymark.engine.inspection.status import OpenInstant, read_open_instant
from tallymark.engine.instants.fencing import FENCE_FOLDER, read_fences
from tallymark.engine.instants.table_handle import TableHandle
from tallymark.engine.markers.loading import load_markers
from tallymark.engine.markers.segment import marker_folder
from tallymark.engine.tasks.file_name import instant_of
from tallymark.engine.timeline.entry import DataFile, LogEntry
from tallymark.engine.timeline.history import History
from tallymark.engine.timeline.instant import FLOOR
from tallymark.engine.timeline.log import BODY_FOLDER, LOG_FOLDER
from tallymark.engine.timeline.properties import TableProperties

PARTITION_METADATA = ".hoodie_partition_metadata"

_STAYS = "It stays as long as the table does."


def paths_below(url: str, text: str) -> tuple[str, ...]:
    """Return the relative paths that the text may mean, the likelier first: it is a relative path, or a URL below the
    table's.

    URLs are percent-encoded if they are from Spark (``input_file_name``) and plain otherwise: both are tried.
    ``s3a://`` is ``s3://``; a local file may be named without ``file:``.

    Raises:
        InvalidRequest: it names the table itself, something outside of it, or nothing.
    """
    found = _relative(url, text)
    if not found:
        raise InvalidRequest(f"{text!r} does not lie below {url}; give a path below the table, or a file's name")
    try:
        return tuple(dict.fromkeys(check_path(path) for path in found))
    except InvalidPath as error:
        raise InvalidRequest(f"file {text!r}: {error}") from error


def _relative(url: str, text: str) -> list[str]:
    if not text.startswith("/") and ":/" not in text:
        return [text.removeprefix("./")]
    base = unquote(_plain(url)) if url.startswith("file:") else _plain(url)
    forms = [_plain(text), unquote(_plain(text))]
    if text.startswith("file:"):
        forms.reverse()
    prefix = f"{base.rstrip('/')}/"
    return [form.removeprefix(prefix) for form in forms if form.startswith(prefix)]


def _plain(url: str) -> str:
    """Return a URL with one spelling per store; a local path without a scheme."""
    if url.startswith("file:"):
        return "/" + url.removeprefix("file:").lstrip("/")
    return f"s3{url.removeprefix('s3a')}" if url.startswith("s3a:") else url


async def explain(handle: TableHandle, properties: TableProperties, file: str) -> Explanation:
    """Return the facts of a file. ``file`` is a path below the table, a URL of it, or the bare name of a data file.

    In addition to the log it reads the file, the reservation of the instant that will deal with it and, where that one
    is open, its markers and its heartbeat. Raises InvalidRequest for a file that is not below the table.
    """
    await handle.log.refresh()
    history = await handle.log.reach(handle.log.history.start)
    path = _logged_path(paths_below(handle.backend.url, file), history)
    kind = bookkeeping(path, history)
    if kind is not None:
        return explained(await _bookkeeping_facts(handle, path, kind))
    facts = await _file_facts(handle, properties, path)
    if facts.decision is None and facts.instant is not None:
        await handle.log.refresh()  # its instant may have been decided, and tidied up, since the log was read
        if history.decision(facts.instant) is not None:
            facts = await _file_facts(handle, properties, path)
    return explained(facts)


def _logged_path(candidates: Iterable[str], history: History) -> str:
    """Return the first of the paths that the log contains, whole or by its bare name; otherwise the first."""
    first, *_ = candidates = tuple(candidates)
    for candidate in candidates:
        decision = history.decision(instant_of(_name(candidate)) or "")
        named = () if decision is None else (*(file.path for file in decision[1].added), *decision[1].fenced)
        if candidate in named:
            return candidate
        if "/" not in candidate and (path := _by_name(candidate, named)):
            return path
    return first


async def _bookkeeping_facts(handle: TableHandle, path: str, kind: Bookkeeping) -> BookkeepingFacts:
    return BookkeepingFacts(
        url=handle.backend.url,
        path=path,
        kind=kind,
        is_there=await _is_there(handle.backend, path),
        writer=None if kind.instant is None else await read_open_instant(handle, kind.instant),
    )


async def _file_facts(handle: TableHandle, properties: TableProperties, path: str) -> FileFacts:
    history = handle.log.history
    instant = instant_of(_name(path))
    decision = None if instant is None else history.decision(instant)
    is_archived = instant is not None and decision is None and history.decided(instant) is not None
    added_at = history.start if is_archived else None if decision is None else decision[0]
    replaced_by = None if added_at is None else _replaced_by(history, path, added_at)
    if decision is not None:
        file = _at(path, decision[1].added)
    elif replaced_by is not None:
        file = _at(path, replaced_by[1].removed)
    else:
        file = await _live(handle, properties, path) if is_archived else None
    remover = _remover(history, properties, replaced_by) if file is not None else instant
    writer = None if remover is None else await read_open_instant(handle, remover)
    marked = await _marked(handle, path, writer) if writer is not None and decision is None else None
    path = marked or path
    is_decided_without = decision is not None and file is None
    return FileFacts(
        url=handle.backend.url,
        path=path,
        instant=instant,
        decision=decision,
        is_archived=is_archived,
        file=file,
        replaced_by=replaced_by,
        is_there=await _is_there(handle.backend, path),
        retained_until=None if replaced_by is None else await _retained_until(handle, properties, replaced_by[0]),
        remover=remover,
        writer=writer,
        is_marked=marked is not None,
        fenced_until=await _fenced_until(handle, path, instant) if instant and is_decided_without else None,
    )


async def _live(handle: TableHandle, properties: TableProperties, path: str) -> DataFile | None:
    """Return a file of the table as it is now."""
    view = handle.view(properties)
    return _at(path, await view.at(view.head).files(path.rpartition("/")[0]))


def _at(path: str, files: Iterable[DataFile]) -> DataFile | None:
    return next((file for file in files if file.path == path), None)


def _replaced_by(history: History, path: str, added_at: int) -> tuple[int, LogEntry] | None:
    """Return the entry that replaced a file, with its position."""
    later = ((number, entry) for number, entry in history.after(added_at) if entry.kind == "commit")
    return next((found for found in later if _at(path, found[1].removed)), None)


def _remover(history: History, properties: TableProperties, replaced_by: tuple[int, LogEntry] | None) -> str | None:
    """Return the instant that deletes a committed file; None while there is none."""
    if replaced_by is None or properties.readers == "directory":
        return replaced_by[1].instant if replaced_by else None
    later = (entry for _, entry in history.after(replaced_by[0]) if entry.kind == "clean")
    return next((entry.instant for entry in later if entry.horizon >= replaced_by[0]), None)


async def _retained_until(handle: TableHandle, properties: TableProperties, replaced_at: int) -> float | None:
    """Return until when, by the store's clock, readers of older positions may rely on the file; None if nothing retains
    it.
    """
    if properties.retain_hours is None or replaced_at <= handle.log.history.horizon:
        return None
    put = await handle.log.times()
    return put.at(replaced_at) + properties.retain_hours * 3600


async def _marked(handle: TableHandle, path: str, writer: OpenInstant) -> str | None:
    """Return the path under which the open instant has marked the file, which a bare name lacks; None if it has not."""
    folder = marker_folder(writer.reservation.instant)
    loaded = await load_markers(handle.backend, folder, concurrency=handle.commit_settings.concurrency)
    paths = loaded.paths
    return path if path in paths else None if "/" in path else _by_name(path, paths)


async def _fenced_until(handle: TableHandle, path: str, instant: str) -> float | None:
    """Return until when, by the store's clock, a fence occupies the path; None if no list names it."""
    for entry in [entry async for entry in handle.backend.list(f"{FENCE_FOLDER}/{instant}")]:
        if path in await read_fences(handle.backend, entry.path):
            decided = handle.log.history.decided(instant)
            decided_at = entry.modified if decided is None else (await handle.log.times()).at(decided.position)
            since = max(entry.modified, decided_at) if isfinite(decided_at) else entry.modified
            return since + handle.commit_settings.zombie_after_s
    return None


async def _is_there(backend: Backend, path: str) -> bool:
    """Return whether the file exists: by one request for a file in a partition, or some if that has thousands;
    elsewhere by reading the object, since listing the root of a table without partitions would list the table.
    """
    folder = path.rpartition("/")[0]
    if folder and not (path.startswith(".hoodie/") and "/staged/" not in path and "/recut/" not in path):
        return path in [entry.path async for entry in backend.list(folder)]
    return await exists(backend, path)


def _name(path: str) -> str:
    return path.rpartition("/")[2]


def _by_name(name: str, paths: Iterable[str]) -> str | None:
    return next((path for path in paths if _name(path) == name), None)


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
    if folder == LOG_FOLDER and name.isdigit() and history.start < int(name) <= history.head:
        position = int(name)
        entry = history.entry(position)
        what = f"{entry.kind} of instant {', '.join(member.instant for member in entry.members)}"
        purpose = f"Entry {position} of the commit log, the {what}: the log is the table."
        return Bookkeeping(purpose=purpose, position=position, lasting=_STAYS)
    if not path.startswith(f"{BODY_FOLDER}/"):
        return None
    position = next(
        (number for number in range(history.start + 1, history.head + 1) if history.entry(number).nonce == name), 0
    )
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
