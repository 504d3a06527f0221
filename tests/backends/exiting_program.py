"""A driver that gives up a request to a NameNode and ends with 1; Python's shutdown takes until standard input ends.

It writes "asked", "ending" (an exit handler) and "down" (amid the shutdown, when no thread may come back), a line each.
"""

import atexit
import os
import sys
import threading
from contextlib import suppress
from types import ModuleType

from hdfs_native import Client

from tallymark.backends import under_way
from tallymark.backends.errors import Unavailable
from tallymark.backends.hdfs_client import HdfsClient
from tallymark.backends.options import StorageOptions


def main(authority: str) -> None:
    under_way.EXIT_WAIT_S = 60.0  # the call comes back when the test says so, on a busy machine, too
    client = HdfsClient(authority, StorageOptions(hadoop=(("dfs.client.failover.max.attempts", "1"),)))
    asking = threading.Event()

    def ask(hdfs: Client) -> None:
        asking.set()
        hdfs.get_file_info("/x")

    def call() -> None:
        with suppress(Unavailable):
            client.call(ask, authority)

    threading.Thread(target=call, daemon=True).start()
    asking.wait()
    atexit.register(say, b"ending\n")
    last = ModuleType("last")
    vars(last)["held"] = LongShutdown()
    sys.modules["last"] = last
    say(b"asked\n")
    sys.exit(1)


class LongShutdown:
    """Freed with the modules, after the exit handlers: other threads are ended when they come back by then."""

    def __del__(self, say=os.write, wait=os.read) -> None:
        say(1, b"down\n")
        wait(0, 1)


def say(line: bytes) -> None:
    os.write(1, line)


if __name__ == "__main__":
    main(*sys.argv[1:])
