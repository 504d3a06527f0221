"""How often files of a folder are written: the kernel tells of each that is closed after it was (inotify)."""

import ctypes
import os
import re
import struct
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_CLOSE_WRITE, _OVERFLOW = 0x8, 0x4000
_EVENT = struct.Struct("iIII")
_READ_BYTES = 1 << 20
_MARKERS = re.compile(rb"MARKERS\d+\0*")


class Rewrites:
    """Of files ``MARKERS<n>``. Where the kernel has dropped events nothing is said."""

    def __init__(self, watching: int, call: ctypes.CDLL) -> None:
        self._watching = watching
        self._call = call
        self._folders: dict[Path, int] = {}
        self._counts: Counter[int] = Counter()
        self._is_whole = True

    def watch(self, folder: Path) -> None:
        if folder not in self._folders:
            number = self._call.inotify_add_watch(self._watching, os.fsencode(folder), _CLOSE_WRITE)
            if number < 0:
                raise OSError(ctypes.get_errno(), f"{folder} cannot be watched")
            self._folders[folder] = number

    def count(self, folder: Path) -> int | None:
        """Since it is watched."""
        return self._counts[self._folders[folder]] if self._is_whole else None

    def run(self) -> None:
        """Count until the descriptor is closed."""
        while True:
            try:
                data = os.read(self._watching, _READ_BYTES)
            except OSError:
                return
            self._take(data)

    def _take(self, data: bytes) -> None:
        at = 0
        while at < len(data):
            number, mask, _, size = _EVENT.unpack_from(data, at)
            name = data[at + _EVENT.size : at + _EVENT.size + size]
            at += _EVENT.size + size
            if mask & _OVERFLOW:
                self._is_whole = False
            elif _MARKERS.fullmatch(name):
                self._counts[number] += 1


@contextmanager
def counting_rewrites() -> Iterator[Rewrites]:
    """Raises OSError where the kernel watches no files."""
    call = ctypes.CDLL(None, use_errno=True)
    watching = call.inotify_init1(os.O_CLOEXEC)
    if watching < 0:
        raise OSError(ctypes.get_errno(), "no folder can be watched")
    found = Rewrites(watching, call)
    threading.Thread(target=found.run, daemon=True).start()
    try:
        yield found
    finally:
        os.close(watching)
