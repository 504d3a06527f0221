"""hdfs-native's own calls, with the syncs that make a file durable."""

import secrets
from collections.abc import Sequence

from hdfs_native import Client, WriteOptions


class HdfsNative:
    name = "hdfs-native"

    def __init__(self, client: Client, root: str) -> None:
        """``root`` is an absolute path of the client's file system."""
        self._client = client
        self._root = root
        self._client.mkdirs(self._at(".scratch"), 0o755, create_parent=True)

    def get(self, path: str) -> object:
        with self._client.read(self._at(path)) as file:
            return file.read()

    def put(self, path: str, data: bytes) -> None:
        self._written(path, [data], overwrite=True)

    def put_new(self, path: str, data: bytes) -> None:
        self._written(path, [data], overwrite=False)

    def list(self, directory: str) -> int:
        found = self._client.list_status(self._at(directory), recursive=True)
        return len(sorted((status.path, status.length, status.modification_time) for status in found))

    def delete(self, paths: Sequence[str]) -> None:
        for path in paths:
            self._client.delete(self._at(path), recursive=False)

    def data_file(self, path: str, pieces: Sequence[bytes]) -> None:
        self._written(path, pieces, overwrite=False)

    def _written(self, path: str, pieces: Sequence[bytes], *, overwrite: bool) -> None:
        scratch = self._at(f".scratch/{secrets.token_hex(12)}")
        with self._client.create(scratch, WriteOptions()) as file:
            for piece in pieces:
                file.write(piece)
            file.hsync()
        try:
            self._client.rename(scratch, self._at(path), overwrite)
        except FileNotFoundError:
            self._client.mkdirs(self._at(path).rpartition("/")[0], 0o755, create_parent=True)
            self._client.rename(scratch, self._at(path), overwrite)

    def _at(self, path: str) -> str:
        return f"{self._root}/{path}"
