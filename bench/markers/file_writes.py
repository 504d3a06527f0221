"""Files that are written below a folder, counted by inotify: how often, and how many bytes.

A write is a file that is closed after writing, or that is linked or renamed into place. Its bytes are those of the
whole file a moment later: one that is written again within about a millisecond may count with fewer. A process that
writes its files again is thus counted as one that writes new files.

Left out are checksum files, which Hadoop writes on local disks only, and files under names of unfinished objects.
"""

import ctypes
import os
import select
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from tallymark.backends.errors import TallymarkError

CHECKSUM, UNFINISHED = ".crc", ".unfinished"

_CLOSE_WRITE, _OPEN, _MOVED_TO, _CREATE = 0x8, 0x20, 0x80, 0x100
_ONLY_FOLDERS, _IS_FOLDER, _OVERFLOW = 0x01000000, 0x40000000, 0x4000
_CLOSE_ON_EXEC = 0o2000000

_EVENT = struct.Struct("iIII")
_READ_BYTES = 1 << 20


class EventsLost(TallymarkError):
    """The kernel has dropped events, or offers no inotify."""


@dataclass(slots=True)
class FileWrites:
    """Counts of a block of ``file_writes``; complete once it has ended."""

    finished: int = 0
    finished_bytes: int = 0
    is_overflown: bool = False
    _created: dict[str, int] = field(default_factory=dict)
    """Bytes of files that have appeared and were not closed since: links, or files closed before they were watched."""

    @property
    def count(self) -> int:
        return self.finished + len(self._created)

    @property
    def bytes(self) -> int:
        return self.finished_bytes + sum(self._created.values())

    def appear(self, path: str) -> None:
        if not _is_left_out(path):
            self._created.setdefault(path, _size(path))

    def finish(self, path: str) -> None:
        if not _is_left_out(path):
            self._created.pop(path, None)
            self.finished += 1
            self.finished_bytes += _size(path)


@contextmanager
def file_writes(folder: Path) -> Iterator[FileWrites]:
    """Count what any process writes below an existing folder during the block; files that are there are not counted.

    Raises:
        EventsLost: the counts would be too low.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    descriptor = libc.inotify_init1(_CLOSE_ON_EXEC)
    if descriptor < 0:
        raise EventsLost(f"inotify cannot be used: {os.strerror(ctypes.get_errno())}")
    writes = FileWrites()
    watch = _Watch(libc, descriptor, writes)
    stop_reader, stop_writer = os.pipe()
    thread = threading.Thread(target=watch.run, args=(stop_reader,))
    try:
        watch.add(str(folder), is_new=False)
        thread.start()
        try:
            yield writes
        finally:
            os.write(stop_writer, b"x")
            thread.join()
    finally:
        for each in (descriptor, stop_reader, stop_writer):
            os.close(each)
    if writes.is_overflown:
        raise EventsLost(f"more files were written below {folder} than could be counted")


class _Watch:
    def __init__(self, libc: ctypes.CDLL, descriptor: int, writes: FileWrites) -> None:
        self._libc = libc
        self._descriptor = descriptor
        self._writes = writes
        self._folders: dict[int, str] = {}

    def add(self, folder: str, *, is_new: bool) -> None:
        """Watch a folder and those below it. Files that a new folder contains by then are counted."""
        # The kernel merges equal events that follow each other: an opening separates two closings.
        mask = _CLOSE_WRITE | _OPEN | _MOVED_TO | _CREATE | _ONLY_FOLDERS
        number = self._libc.inotify_add_watch(self._descriptor, os.fsencode(folder), mask)
        if number < 0:
            return  # it has been deleted
        self._folders[number] = folder
        with suppress(FileNotFoundError), os.scandir(folder) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    self.add(entry.path, is_new=is_new)
                elif is_new:
                    self._writes.appear(entry.path)

    def run(self, stop: int) -> None:
        """Read events until ``stop`` can be read, and then those that are there."""
        while stop not in (ready := select.select([self._descriptor, stop], [], [])[0]):
            self._read()
        while self._descriptor in ready:
            self._read()
            ready = select.select([self._descriptor], [], [], 0)[0]

    def _read(self) -> None:
        data, place = os.read(self._descriptor, _READ_BYTES), 0
        while place < len(data):
            number, mask, _, length = _EVENT.unpack_from(data, place)
            name = data[place + _EVENT.size : place + _EVENT.size + length].rstrip(b"\0")
            place += _EVENT.size + length
            if mask & _OVERFLOW:
                self._writes.is_overflown = True
            elif name:
                self._see(mask, f"{self._folders[number]}/{os.fsdecode(name)}")

    def _see(self, mask: int, path: str) -> None:
        if mask & _IS_FOLDER:
            if mask & (_CREATE | _MOVED_TO):
                self.add(path, is_new=True)
        elif mask & _CREATE:
            self._writes.appear(path)
        elif mask & (_CLOSE_WRITE | _MOVED_TO):
            self._writes.finish(path)


def _is_left_out(path: str) -> bool:
    return path.endswith(CHECKSUM) or f"/{UNFINISHED}/" in path


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size  # noqa: PTH116  # a path of text
    except FileNotFoundError:
        return 0
