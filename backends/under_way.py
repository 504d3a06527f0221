"""Calls into a vendor's library that have not returned, and what becomes of them when the process ends.

Up to version 3.13 Python ends with ``pthread_exit`` a thread that comes back to it while it shuts down. That unwinds
the thread's stack, and where a frame there stops every unwinding, as those of hdfs-native do, the C library aborts the
process: "exception not rethrown". A driver that had told a clean error would end by SIGABRT.
"""

import os
import threading
import time

EXIT_WAIT_S = 5.0
"""How long the end of a process waits for calls: the repeats of a vendor that is refused take a second or two. What
hangs for longer hangs on a silent server, and is not likely to return in just the moment that Python shuts down."""

POLL_S = 0.01


class CallsInFlight:
    """Those of one process; a child that was forked has none of them."""

    def __init__(self) -> None:
        self._pid = os.getpid()
        self._calls: set[object] = set()
        self._is_closed = False

    def begin(self, call: object) -> bool:
        """Return whether the call may be made; then it has to ``end``."""
        self._calls.add(call)  # first, so that whoever closes at this moment sees it
        if self._is_closed:
            self._calls.discard(call)
            return False
        return True

    def end(self, call: object) -> None:
        self._calls.discard(call)

    def close(self) -> None:
        """Let no further call begin, and wait for those under way for at most ``EXIT_WAIT_S``."""
        self._is_closed = True
        if self._pid != os.getpid():
            return
        until = time.monotonic() + EXIT_WAIT_S
        never = threading.Event()
        while self._calls and time.monotonic() < until:
            never.wait(POLL_S)

    def __repr__(self) -> str:
        return f"<CallsUnderWay {len(self._calls)}>"
