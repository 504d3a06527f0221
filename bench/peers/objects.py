"""obstore's own calls on S3 or GCS."""

import io
from collections.abc import Sequence

from obstore.store import GCSStore, S3Store


class Obstore:
    name = "obstore"

    def __init__(self, store: S3Store | GCSStore) -> None:
        self._store = store

    def get(self, path: str) -> object:
        return self._store.get(path).bytes()

    def put(self, path: str, data: bytes) -> None:
        self._store.put(path, data, use_multipart=False)

    def put_new(self, path: str, data: bytes) -> None:
        self._store.put(path, data, mode="create")

    def list(self, directory: str) -> int:
        return len(self._store.list(f"{directory}/").collect())

    def delete(self, paths: Sequence[str]) -> None:
        self._store.delete(list(paths))

    def data_file(self, path: str, pieces: Sequence[bytes]) -> None:
        sink = io.BytesIO()
        for piece in pieces:
            sink.write(piece)
        self._store.put(path, sink.getbuffer(), mode="create")
