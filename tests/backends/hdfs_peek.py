"""A directory of HDFS as Hadoop's own client sees it."""

import secrets

from tallymark.backends import open_backend
from tallymark.backends.hdfs import SCRATCH
from tests.support.services.minidfs import MiniDfs


class HdfsPeek:
    """A fresh directory, read around the backend."""

    def __init__(self, dfs: MiniDfs) -> None:
        self.dfs = dfs
        self.root = f"/tests/{secrets.token_hex(6)}"
        self.backend = open_backend(f"{dfs.url}{self.root}")

    def objects(self) -> dict[str, bytes]:
        return self.dfs.objects(self.root)

    def directories(self) -> list[str]:
        return [folder for folder in self.dfs.directories(self.root) if folder != SCRATCH]
