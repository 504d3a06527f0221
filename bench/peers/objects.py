"""obstore's own calls on S3 or GCS."""

import io
from collections.abc import Sequence

import obstore
from obstore.store import ObjectStore


class Obstore:
    name = "obstore"

    def __init__(self, store: ObjectStore, prefix: str) -> None:
        """``prefix`` begins every key."""
        self._store = store
        self._prefix = prefix

    def get(self, path: str) -> object:
        return obstore.get(self._store, f"{self._prefix}/{path}").bytes()

    def put(self, path: str, data: bytes) -> None:
        obstore.put(self._store, f"{self._prefix}/{path}", data, use_multipart=False)

    def put_new(self, path: str, data: bytes) -> None:
        obstore.put(self._store, f"{self._prefix}/{path}", data, mode="create")

    def list(self, directory: str) -> int:
        return len(obstore.list(self._store, f"{self._prefix}/{directory}").collect())

    def delete(self, paths: Sequence[str]) -> None:
        obstore.delete(self._store, [f"{self._prefix}/{path}" for path in paths])

    def data_file(self, path: str, pieces: Sequence[bytes]) -> None:
        sink = io.BytesIO()
        for piece in pieces:
            sink.write(piece)
        obstore.put(self._store, f"{self._prefix}/{path}", sink.getbuffer(), mode="create")
