"""A data file that grows in its staging directory on HDFS, and is renamed to its name when it is whole."""

import io
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, BinaryIO, cast

from typing_extensions import Buffer

from tallymark.backends.contract import NewFile
from tallymark.backends.errors import AlreadyExists, BackendError, NotFound, Unavailable
from tallymark.backends.hdfs_client import HdfsClient, create

if TYPE_CHECKING:
    from hdfs_native._internal import RawFileWriter

SINK_BUFFER_BYTES = 1 << 20
"""What one call writes, and what may be under way at once."""


class StagedFile:
    def __init__(self, client: HdfsClient, staged: str, target: str, bring: Callable[[str, str], None]) -> None:
        """Blocking. ``bring`` renames one absolute path to another.

        Raises:
            NotFound: the staging directory does not exist, or was closed.
        """
        self._client = client
        self._staged = staged
        self._target = target
        self._bring = bring
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
            self._bring(self._staged, self._target)
            self._is_over = True
        except NotFound as error:
            raise NotFound(f"{self._target}: its staging directory was closed: {error}") from error
        finally:
            self.abandon()

    def again(self, path: str) -> NewFile:
        raise Unavailable(f"{path}: a data file on HDFS is not brought a second time; write it anew")

    def abandon(self) -> None:
        """The file is deleted as it is; nobody has to close it first."""
        if not self._is_over:
            self._is_over = True
            with suppress(BackendError):
                self._client.call(lambda hdfs: hdfs.delete(self._staged, False), self._staged)
            self._raw.forget()


class _Growing(io.RawIOBase):
    """The vendor's writer, each call bounded. After a failed one it takes no more: what was written is not known."""

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
        held = bytes(data)  # the caller's buffer may change while a call that nobody waits for goes on
        self._ask(lambda file: file.write(held), sent=len(held))
        self._size += len(held)
        return len(held)

    def finish(self) -> None:
        """On return the bytes are on the disks of their DataNodes, and the file is closed."""
        self._ask(lambda file: file.hsync(), sent=SINK_BUFFER_BYTES)
        self._ask(lambda file: file.close())

    def forget(self) -> None:
        """Take no more, and let go of what is buffered."""
        self._failed = self._failed or Unavailable(f"{self._staged} was abandoned")

    def _ask(self, ask: "Callable[[RawFileWriter], object]", *, sent: int = 0) -> None:
        if self._failed is not None:
            raise self._failed
        try:
            self._client.call(lambda _hdfs: ask(self._file), self._staged, sent=sent)
        except AlreadyExists as error:
            self._failed = Unavailable(str(error))
            raise self._failed from error
        except BackendError as error:
            self._failed = error
            raise
