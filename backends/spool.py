"""Bytes of a data file until they are sent: in memory while they are few, in a temporary file beyond.

Such a file has no name, is in the machine's temporary directory (``TMPDIR``), and is deleted with the process.
"""

import io
import mmap
import tempfile
from contextlib import suppress
from typing import BinaryIO, cast

from tallymark.backends.errors import NotPermitted
from tallymark.backends.object_client import Data


class Spool:
    """Bytes written in order, then read whole as often as needed. Used by one thread at a time."""

    def __init__(self, memory_bytes: int) -> None:
        """``memory_bytes``: maximum kept in memory."""
        self._file = tempfile.SpooledTemporaryFile(max_size=memory_bytes)  # noqa: SIM115
        if not memory_bytes:
            self._file.rollover()  # to the standard library 0 means without a limit

    @property
    def sink(self) -> BinaryIO:
        return cast("BinaryIO", self._file)

    def whole(self) -> Data:
        """Return all bytes. A file is mapped and not read: the system may reclaim the memory that it takes.

        Raises:
            NotPermitted: there is no room for the last of them.
        """
        try:
            return self._whole()
        except OSError as error:
            raise NotPermitted(
                f"{tempfile.gettempdir()}: a data file's bytes could not be kept there ({error.strerror}), and nothing "
                "was sent; free space there, or name another directory by TMPDIR"
            ) from error

    def close(self) -> None:
        """Drop the bytes."""
        with suppress(OSError):  # without room for the last of them: they are not needed
            self._file.close()

    def _whole(self) -> Data:
        content = self._file._file  # a name that the standard library documents
        if isinstance(content, io.BytesIO):
            return content.getvalue()  # the very bytes; reading them would make a second copy
        size = self._file.seek(0, 2)
        self._file.flush()
        return mmap.mmap(self._file.fileno(), size, access=mmap.ACCESS_READ) if size else b""

    def __del__(self) -> None:
        self.close()
