"""Calls of hdfs-native's blocking client, each within a time limit, and from any process.

Owns: the client's settings, one client per process, the time limit of each call. Does not own: the requests
(``backend``) and their retries (``retry``).

The vendor's client waits without limit for a NameNode that does not answer. A client that was made before a fork hangs
in the child, because its threads are not in the child. Each call therefore runs in another thread, which is never
joined: the caller stops waiting after the time limit, and the call ends when its connection does. Its thread then takes
the next call. ``shutdown_guard`` waits for such calls when the process ends.
"""

import os
import threading
import weakref
from collections.abc import Callable, Mapping
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, TypeVar, cast

from tallymark.backends.errors import BackendError, NotInstalled, Unavailable
from tallymark.backends.hdfs.errors import translate
from tallymark.backends.hdfs.shutdown_guard import ShutdownGuard
from tallymark.backends.options import StorageOptions

if TYPE_CHECKING:
    from hdfs_native import Client
    from hdfs_native._internal import RawFileWriter

T = TypeVar("T")

FAILOVER: Mapping[str, str] = {
    "dfs.client.failover.max.attempts": "4",
    "dfs.client.failover.sleep.base.millis": "50",
    "dfs.client.failover.sleep.max.millis": "250",
}
"""Limits of the vendor's own retries, which by default take minutes: enough to try each of three NameNodes within a
second or two. ``retry`` makes the further ones."""

KERBEROS = {
    "kerberos.principal": "kerberos_principal",
    "kerberos.keytab": "kerberos_keytab",
    "kerberos.cache": "kerberos_cache",
}
"""Keys of ``StorageOptions.hadoop`` that Hadoop has no setting for, and hdfs-native's arguments."""

IDLE_S = 10.0
"""How long a thread without a call waits for one. Starting a thread per call would take as long as a request to a near
NameNode. Idle threads end soon after the work."""

UNANSWERED_COUNT_MAX = 128
"""Calls whose callers have given up and whose threads still wait; beyond it further calls are refused at once."""


class HdfsClient:
    def __init__(self, authority: str, options: StorageOptions) -> None:
        """Take ``authority`` as ``host:port``, the name of a name service, or "" for the configured default."""
        self.url = f"hdfs://{authority}"
        self._options = options
        self._process: _Process | None = None

    def call(self, request: "Callable[[Client], T]", at: str, *, sent: int = 0) -> T:
        """Return the result of ``request`` on the vendor's client; ``sent`` is the number of bytes it writes or reads.

        Raises:
            BackendError: the vendor's error, translated; ``at`` is the URL of the file in question.
            Unavailable: no answer within ``request_timeout_s`` and the time for the bytes. It may still succeed.
        """
        process = self._process
        if process is None or process.pid != os.getpid():
            process = self._process = _Process(self._make_client(at))
        return process.call(request, at, self.time_limit_s(sent))

    def time_limit_s(self, sent: int) -> float:
        """Return the longest time of a call that writes or reads this many bytes."""
        return self._options.request_timeout_s + sent / self._options.data_bytes_per_s_min

    def _make_client(self, at: str) -> "Client":
        try:
            from hdfs_native import Client
        except ImportError as error:
            raise NotInstalled(f"{at}: hdfs-native is missing: pip install 'tallymark[hdfs]'") from error
        settings = {**FAILOVER, **dict(self._options.hadoop)}
        kerberos = {name: settings.pop(key, None) for key, name in KERBEROS.items()}
        try:
            return Client(self.url if self.url != "hdfs://" else None, settings, **kerberos)
        except Exception as error:
            raise translate(at, error) from error


def create(hdfs: "Client", absolute: str, *, create_parent: bool) -> "RawFileWriter":
    """Return a new, open file.

    The client's own ``create`` wraps it in a file object that closes itself when it is freed. If a server is dead, this
    blocks for 15 s and more the thread that frees the last error of a failed write.
    """
    from hdfs_native import WriteOptions

    return hdfs.inner.create(absolute, WriteOptions(create_parent=create_parent))


Call = tuple["Callable[[Client], object]", "SimpleQueue[tuple[object] | BaseException]"]
"""The request, and the queue for its answer."""


class _Process:
    """The client of one process, and its calls."""

    def __init__(self, client: "Client") -> None:
        self.pid = os.getpid()
        self._client = client
        self._idle: list[SimpleQueue[Call]] = []
        """Queues at which threads wait for a call; the thread that has waited the shortest is last."""
        self._given_up: set[object] = set()
        """Answers that have not arrived, and whose callers have given up."""
        self._shutdown_guard = ShutdownGuard()
        weakref.finalize(self, self._shutdown_guard.close)  # at exit, when threads may still be in a call

    def call(self, request: "Callable[[Client], T]", at: str, seconds: float) -> T:
        if len(self._given_up) >= UNANSWERED_COUNT_MAX:
            raise Unavailable(f"{at}: {len(self._given_up)} earlier requests have had no answer")
        answer: SimpleQueue[tuple[T] | BaseException] = SimpleQueue()
        if not self._shutdown_guard.start(answer):
            raise Unavailable(f"{at}: this process is shutting down and sends no further requests")
        try:
            self._calls().put((request, cast("SimpleQueue[tuple[object] | BaseException]", answer)))
        except BaseException:
            self._shutdown_guard.end(answer)
            raise
        try:
            found = answer.get(timeout=seconds)
        except Empty:
            self._given_up.add(answer)
            if not answer.empty():  # it has just arrived
                self._given_up.discard(answer)
            raise Unavailable(f"{at}: no answer within {seconds:.1f} s") from None
        if isinstance(found, BackendError):
            raise found
        if isinstance(found, BaseException):
            raise translate(at, found) from found
        return found[0]

    def __del__(self) -> None:
        if self.pid != os.getpid():
            _LEFT_BEHIND.append(self._client)

    def _calls(self) -> "SimpleQueue[Call]":
        """Return the queue of a thread that waits for a call."""
        try:
            return self._idle.pop()
        except IndexError:
            calls: SimpleQueue[Call] = SimpleQueue()
            threading.Thread(target=self._run, args=(calls,), name="hdfs", daemon=True).start()
            return calls

    def _run(self, calls: "SimpleQueue[Call]") -> None:
        while True:
            try:
                self._answer(calls, *calls.get(timeout=IDLE_S))
            except Empty:
                try:
                    self._idle.remove(calls)
                except ValueError:  # a caller has just taken the queue, and puts a call there
                    continue
                return

    def _answer(
        self,
        calls: "SimpleQueue[Call]",
        request: "Callable[[Client], object]",
        answer: "SimpleQueue[tuple[object] | BaseException]",
    ) -> None:
        found: tuple[object] | BaseException
        try:
            found = (request(self._client),)
        except BaseException as error:  # the vendor's panics are not Exceptions
            found = error
        self._idle.append(calls)  # before the answer, so that the caller's next request finds this thread
        answer.put(found)
        self._given_up.discard(answer)
        self._shutdown_guard.end(answer)


_LEFT_BEHIND: list["Client"] = []
"""Clients of a parent process, one or two per worker. They are never freed: that would wait for their threads, which a
fork does not copy."""
