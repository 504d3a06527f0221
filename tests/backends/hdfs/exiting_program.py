"""A driver that gives up a request to a NameNode and ends with 1; Python's shutdown takes until standard input ends.

It writes "requested", "ending" (an exit handler) and "down" (during the shutdown, when no thread may return), a line
each.
"""

import atexit
import os
import sys
import threading
from contextlib import suppress
from types import ModuleType

from hdfs_native import Client

from tallymark.backends.errors import Unavailable
from tallymark.backends.hdfs import HdfsClient, shutdown_guard
from tallymark.backends.options import StorageOptions


def main(authority: str) -> None:
    shutdown_guard.EXIT_WAIT_S = 60.0  # the test decides when the call returns, on a busy machine, too
    client = HdfsClient(authority, StorageOptions(hadoop=(("dfs.client.failover.max.attempts", "1"),)))
    requesting = threading.Event()

    def request(hdfs: Client) -> None:
        requesting.set()
        hdfs.get_file_info("/x")

    def call() -> None:
        with suppress(Unavailable):
            client.call(request, authority)

    threading.Thread(target=call, daemon=True).start()
    requesting.wait()
    atexit.register(write, b"ending\n")
    last = ModuleType("last")
    vars(last)["last"] = LongShutdown()
    sys.modules["last"] = last
    write(b"requested\n")
    sys.exit(1)


class LongShutdown:
    """Freed with the modules, after the exit handlers: threads that return by then are ended."""

    def __del__(self, write_out=os.write, wait=os.read) -> None:
        write_out(1, b"down\n")
        wait(0, 1)


def write(line: bytes) -> None:
    os.write(1, line)


if __name__ == "__main__":
    main(*sys.argv[1:])
