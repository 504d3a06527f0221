"""Data files on HDFS: each grows in its staging directory, and is renamed to its name when it is whole."""

import io
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, BinaryIO, cast

from typing_extensions import Buffer

from tallymark.backends.contract import NewFile
from tallymark.backends.errors import AlreadyExists, BackendError, NotFound, Unavailable
from tallymark.backends.hdfs.client import HdfsClient, create

if TYPE_CHECKING:
    from hdfs_native._internal import RawFileWriter

SINK_BUFFER_BYTES = 1 << 20
"""Bytes of one write, and the most that may be in flight."""


class StagedFile:
    def __init__(self, client: HdfsClient, staged: str, target: str, rename: Callable[[str, str], None]) -> None:
        """Blocking. ``rename`` renames one absolute path to another.

        Raises:
            NotFound: the staging directory does not exist, or was closed.
        """
        self._client = client
        self._staged = staged
        self._target = target
        self._rename = rename
        self._is_over = False
        self._raw = _Growing(client, staged)
        self._sink = io.BufferedWriter(self._raw, SINK_BUFFER_BYTES)

    @property
    def sink(self) -> BinaryIO:
        return cast("BinaryIO", self._sink)

    def publish(self) -> None:
        try:
            self._sink.flush()
            self._raw.finish()
            self._rename(self._staged, self._target)
            self._is_over = True
        except NotFound as error:
            raise NotFound(f"{self._target}: its staging directory was closed: {error}") from error
        finally:
            self.abandon()

    def again(self, path: str) -> NewFile:
        raise Unavailable(f"{path}: a data file on HDFS is not published under a second name; write it again")

    def abandon(self) -> None:
        """Delete the file as it is; it need not be closed first."""
        if not self._is_over:
            self._is_over = True
            with suppress(BackendError):
                self._client.call(lambda hdfs: hdfs.delete(self._staged, False), self._staged)
            self._raw.forget()


class _Growing(io.RawIOBase):
    """The vendor's writer, each call within a time limit. After a failure it refuses: what was written is unknown."""

    def __init__(self, client: HdfsClient, staged: str) -> None:
        self._client = client
        self._staged = staged
        self._failed: BackendError | None = None
        self._size = 0
        self._file = client.call(lambda hdfs: create(hdfs, staged, create_parent=False), staged)

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._size

    def write(self, data: Buffer) -> int:
        copy = bytes(data)  # the caller's buffer may change while a call that has timed out continues
        self._call(lambda file: file.write(copy), sent=len(copy))
        self._size += len(copy)
        return len(copy)

    def finish(self) -> None:
        """Sync the bytes to the disks of their DataNodes, and close the file."""
        self._call(lambda file: file.hsync(), sent=SINK_BUFFER_BYTES)
        self._call(lambda file: file.close())

    def forget(self) -> None:
        """Refuse further writes."""
        self._failed = self._failed or Unavailable(f"{self._staged} was abandoned")

    def _call(self, request: "Callable[[RawFileWriter], object]", *, sent: int = 0) -> None:
        if self._failed is not None:
            raise self._failed
        try:
            self._client.call(lambda _hdfs: request(self._file), self._staged, sent=sent)
        except AlreadyExists as error:
            self._failed = Unavailable(str(error))
            raise self._failed from error
        except BackendError as error:
            self._failed = error
            raise
