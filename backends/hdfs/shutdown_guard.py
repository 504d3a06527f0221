"""Guard against an abort at shutdown: the process waits for calls into hdfs-native that have not returned.

Up to version 3.13 Python uses ``pthread_exit`` to end a thread that re-enters the interpreter during shutdown. This
unwinds the thread's stack. Frames of hdfs-native stop every unwinding, so the C library aborts the process: "exception
not rethrown". A driver that had reported a clean error would end by SIGABRT.
"""

import os
import threading
import time

EXIT_WAIT_S = 5.0
"""Longest wait for calls at the end of a process. The retries of hdfs-native take a second or two when a server refuses
them. A longer call waits for a silent server, and is unlikely to return in the moment of the shutdown."""

POLL_S = 0.01


class ShutdownGuard:
    """Calls in flight of one process. A forked child has none of them."""

    def __init__(self) -> None:
        self._pid = os.getpid()
        self._calls: set[object] = set()
        self._is_closed = False

    def start(self, call: object) -> bool:
        """Return whether the call may be made. If so, the caller calls ``end`` after it."""
        self._calls.add(call)  # before the check, so that a concurrent close sees it
        if self._is_closed:
            self._calls.discard(call)
            return False
        return True

    def end(self, call: object) -> None:
        self._calls.discard(call)

    def close(self) -> None:
        """Refuse further calls, and wait for those in flight for at most ``EXIT_WAIT_S``."""
        self._is_closed = True
        if self._pid != os.getpid():
            return
        until = time.monotonic() + EXIT_WAIT_S
        never = threading.Event()
        while self._calls and time.monotonic() < until:
            never.wait(POLL_S)

    def __repr__(self) -> str:
        return f"<ShutdownGuard {len(self._calls)}>"
