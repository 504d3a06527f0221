"""A writer on HDFS that says when each of its tasks has a file half written, and waits until it is told to go on."""

import sys
from pathlib import Path

from tests.support.process import await_that
from tests.system.hdfs.hdfs_jobs import write


def main(folder: str, url: str) -> None:
    def wait() -> None:
        Path(folder, "half written").touch()
        await_that(Path(folder, "go on").exists, "the test says so")

    write(url, first_id=0, amid=wait)


if __name__ == "__main__":
    main(*sys.argv[1:])
