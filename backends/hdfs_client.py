"""One HDFS as hdfs-native's blocking client reaches it, each call within a bound, and from whatever process asks.

Owns: the client's settings, one client a process, the bound of each call. Does not own: what is asked (``hdfs``) and
asking again (``retry``).

The vendor's client waits for ever for a NameNode that does not answer, and a client that was made before a fork hangs
in the child, for its threads stayed behind. So a call runs in another thread, which nobody joins: whoever waits for it
stops waiting after the bound, and the call ends when its connection does. Then its thread takes the next call. The end
of the process waits a little for such calls.
"""

import os
import threading
import weakref
from collections.abc import Callable, Mapping
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, TypeVar, cast

from tallymark.backends.errors import BackendError, NotInstalled, Unavailable
from tallymark.backends.hdfs_errors import told
from tallymark.backends.options import StorageOptions
from tallymark.backends.under_way import CallsInFlight

if TYPE_CHECKING:
    from hdfs_native import Client
    from hdfs_native._internal import RawFileWriter

T = TypeVar("T")

FAILOVER: Mapping[str, str] = {
    "dfs.client.failover.max.attempts": "4",
    "dfs.client.failover.sleep.base.millis": "50",
    "dfs.client.failover.sleep.max.millis": "250",
}
"""Bounds of the vendor's own repeats, which by default go on for minutes: enough to try each of three NameNodes within
a second or two. Repeating beyond is ``retry``'s business."""

KERBEROS = {
    "kerberos.principal": "kerberos_principal",
    "kerberos.keytab": "kerberos_keytab",
    "kerberos.cache": "kerberos_cache",
}
"""Keys of ``StorageOptions.hadoop`` that Hadoop has no setting for, and hdfs-native's arguments."""

IDLE_S = 10.0
"""How long a thread without a call waits for one: starting one for each would take as long as a request to a near
NameNode, and none is to outlive the work for long."""

UNANSWERED_COUNT_MAX = 128
"""Calls that were given up and whose threads still wait, before further ones are refused at once."""


class HdfsClient:
    def __init__(self, authority: str, options: StorageOptions) -> None:
        """``authority`` is ``host:port``, the name of a name service, or "" for the configured default."""
        self.url = f"hdfs://{authority}"
        self._options = options
        self._process: _Process | None = None

    def call(self, ask: "Callable[[Client], T]", at: str, *, sent: int = 0) -> T:
        """What ``ask`` returns. It is given the vendor's client; ``sent`` is the number of bytes it writes or reads.

        Raises:
            BackendError: the vendor's answer in this library's words; ``at`` says what was asked for.
            Unavailable: no answer within ``request_timeout_s`` and the time for the bytes. It may still happen.
        """
        process = self._process
        if process is None or process.pid != os.getpid():
            process = self._process = _Process(self._made(at))
        return process.call(ask, at, self.bound_s(sent))

    def bound_s(self, sent: int) -> float:
        """Return how long a call may take that writes or reads so many bytes."""
        return self._options.request_timeout_s + sent / self._options.data_bytes_per_s_min

    def _made(self, at: str) -> "Client":
        try:
            from hdfs_native import Client
        except ImportError as error:
            raise NotInstalled(f"{at}: hdfs-native is missing: pip install 'tallymark[hdfs]'") from error
        settings = {**FAILOVER, **dict(self._options.hadoop)}
        kerberos = {name: settings.pop(key, None) for key, name in KERBEROS.items()}
        try:
            return Client(self.url if self.url != "hdfs://" else None, settings, **kerberos)
        except Exception as error:
            raise told(at, error) from error


def create(hdfs: "Client", absolute: str, *, create_parent: bool) -> "RawFileWriter":
    """Return a new, open file.

    The client's own ``create`` wraps it in a file object that closes itself where it is forgotten: that blocks for
    15 s and more where a server is gone, in whatever thread frees the last error of a failed write.
    """
    from hdfs_native import WriteOptions

    return hdfs.inner.create(absolute, WriteOptions(create_parent=create_parent))


Call = tuple["Callable[[Client], object]", "SimpleQueue[tuple[object] | BaseException]"]
"""What is asked, and where the answer goes."""


class _Process:
    """The client of one process, and its calls."""

    def __init__(self, client: "Client") -> None:
        self.pid = os.getpid()
        self._client = client
        self._idle: list[SimpleQueue[Call]] = []
        """Where threads wait for a call; the one that waits since the shortest time comes last."""
        self._given_up: set[object] = set()
        """Answers that nobody waits for, and that have not come."""
        self._under_way = CallsInFlight()
        weakref.finalize(self, self._under_way.close)  # at the end of Python, when its threads may still call

    def call(self, ask: "Callable[[Client], T]", at: str, seconds: float) -> T:
        if len(self._given_up) >= UNANSWERED_COUNT_MAX:
            raise Unavailable(f"{at}: {len(self._given_up)} earlier requests are without an answer")
        answer: SimpleQueue[tuple[T] | BaseException] = SimpleQueue()
        if not self._under_way.begin(answer):
            raise Unavailable(f"{at}: this process is ending, and asks for nothing more")
        try:
            self._calls().put((ask, cast("SimpleQueue[tuple[object] | BaseException]", answer)))
        except BaseException:
            self._under_way.end(answer)
            raise
        try:
            found = answer.get(timeout=seconds)
        except Empty:
            self._given_up.add(answer)
            if not answer.empty():  # it came at this moment
                self._given_up.discard(answer)
            raise Unavailable(f"{at}: no answer within {seconds:.1f} s") from None
        if isinstance(found, BackendError):
            raise found
        if isinstance(found, BaseException):
            raise told(at, found) from found
        return found[0]

    def __del__(self) -> None:
        if self.pid != os.getpid():
            _LEFT_BEHIND.append(self._client)

    def _calls(self) -> "SimpleQueue[Call]":
        """Return a thread that waits for a call."""
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
                except ValueError:  # somebody has just taken it, and puts a call there
                    continue
                return

    def _answer(
        self,
        calls: "SimpleQueue[Call]",
        ask: "Callable[[Client], object]",
        answer: "SimpleQueue[tuple[object] | BaseException]",
    ) -> None:
        found: tuple[object] | BaseException
        try:
            found = (ask(self._client),)
        except BaseException as error:  # the vendor's panics are no Exceptions
            found = error
        self._idle.append(calls)  # before the answer, so that whoever asks on finds this thread
        answer.put(found)
        self._given_up.discard(answer)
        self._under_way.end(answer)


_LEFT_BEHIND: list["Client"] = []
"""Clients of a parent process, one or two in a worker's life: to free one waits for its threads, which did not come
along."""
