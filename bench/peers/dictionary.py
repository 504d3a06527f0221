"""A dict: what the harness itself and Python's own calls take."""

import io
from collections.abc import Sequence


class Dictionary:
    name = "dict"

    def __init__(self) -> None:
        self._objects: dict[str, bytes] = {}

    def get(self, path: str) -> object:
        return self._objects[path]

    def put(self, path: str, data: bytes) -> None:
        self._objects[path] = data

    def put_new(self, path: str, data: bytes) -> None:
        if self._objects.setdefault(path, data) is not data:
            raise FileExistsError(path)

    def list(self, directory: str) -> int:
        prefix = f"{directory}/"
        return len(sorted((path, len(data)) for path, data in self._objects.items() if path.startswith(prefix)))

    def delete(self, paths: Sequence[str]) -> None:
        for path in paths:
            del self._objects[path]

    def data_file(self, path: str, pieces: Sequence[bytes]) -> None:
        sink = io.BytesIO()
        for piece in pieces:
            sink.write(piece)
        self.put_new(path, sink.getvalue())
