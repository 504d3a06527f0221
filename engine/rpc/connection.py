"""Connection of a client to the service: it connects, authenticates, reconnects, and exchanges messages.

``ClientConnection.run`` is one loop for all pending requests of a process. Every wait is behind ``ClientIo``:
``ThreadIo`` blocks the daemon thread that the loop runs in; the simulation has a ``ClientIo`` on its virtual clock.

Owns: when to connect, when to retry, what ends the connection. Does not own: which response settles which request
(``pending_requests``), frames and authentication (``frames``, ``handshake``).
"""

import contextlib
import math
import select
import socket
import ssl
import threading
import time
from collections.abc import Coroutine
from random import Random
from typing import Protocol

from tallymark.backends.errors import TallymarkError
from tallymark.backends.events import EventLog
from tallymark.engine.errors import Closed, InvalidRequest, NotAuthenticated, ServiceUnavailable, Stopped
from tallymark.engine.rpc.frames import FrameReader, encode_frame
from tallymark.engine.rpc.handshake import MAC_BYTES, NONCE_BYTES, ClientHandshake, ServiceAddress, Session
from tallymark.engine.rpc.messages import (
    ANSWER_BYTES,
    WHOLE_CONNECTION,
    Answer,
    Refusal,
    Request,
    decode_answer,
    encode_request,
)
from tallymark.engine.rpc.pending_requests import AnyPending, PendingRequests
from tallymark.engine.rpc.tcp import tune
from tallymark.engine.rpc.tls import WOULD_BLOCK, receive

CONNECT_TIMEOUT_S = 5.0
"""For one attempt to connect and authenticate; after that the next attempt starts."""
PAUSE_S_MIN, PAUSE_S_MAX = 0.05, 2.0
"""Between two attempts to connect. Doubled from one to the next, and spread by half of it either way."""

REFUSED_S_MAX = 10.0
"""The service listens before any client knows its address. A machine that refuses connections for this long has no
service any more. Until then a forwarder between the two may be restarting."""

_READ_BYTES = 65536

_events = EventLog(__name__)


class ByteStream(Protocol):
    """An open connection."""

    async def exchange(self, outgoing: bytearray, timeout_s: float | None) -> bytes:
        """Send what the peer takes, removing it from ``outgoing``, and return what it sent.

        Returns nothing after ``timeout_s``, after ``ClientIo.wake``, or when some bytes were sent. Raises OSError when
        the connection is lost or closed.
        """
        ...

    def close(self) -> None: ...


class ClientIo(Protocol):
    """Clock, wait and connect of one client."""

    def time(self) -> float:
        """Return seconds of a monotonic clock."""
        ...

    async def connect(self, host: str, port: int, timeout_s: float) -> ByteStream:
        """Return a connection. Raises OSError if there is none within ``timeout_s``."""
        ...

    async def wait(self, timeout_s: float | None) -> None:
        """Return after ``wake``, or after ``timeout_s``."""
        ...

    def wake(self) -> None:
        """End the wait or exchange that runs now, or the next one. Callable from any thread."""
        ...

    def close(self) -> None: ...


class ClientConnection:
    """Settles every request that ``submit`` has accepted, within its deadline.

    It ends once, by ``stop`` or by a fault in it, and accepts no requests after that.
    """

    def __init__(self, address: ServiceAddress, instant: str, io: ClientIo, random: Random) -> None:
        """``random`` supplies nonces and the spread of pauses: a ``SystemRandom`` outside of simulations."""
        self._address = address
        self._instant = instant
        self._io = io
        self._random = random
        self._pending = PendingRequests(random.random)
        self._lock = threading.Lock()
        self._inbox: list[AnyPending] = []
        self._is_stopping = False
        self._shutdown_error: Stopped | None = None
        """The final message of the service: the job is over, later requests fail without a connection."""
        self._refused_since: float | None = None

    @property
    def has_ended(self) -> bool:
        return self._is_stopping

    @property
    def is_idle(self) -> bool:
        """Whether no request waits for a response. May be read from any thread."""
        return not self._inbox and self._pending.is_settled

    def submit(self, request: AnyPending) -> bool:
        """Accept the request, or return False: the connection has ended. Callable from any thread."""
        with self._lock:
            if self._is_stopping:
                return False
            self._inbox.append(request)
        self._io.wake()
        return True

    def stop(self) -> None:
        """End soon; pending requests fail as Closed. Callable from any thread."""
        with self._lock:
            self._is_stopping = True
        self._io.wake()

    def stop_if_idle(self) -> bool:
        """Stop and return True, or return False: a request waits for its response."""
        with self._lock:
            if not self.is_idle:
                return False
            self._is_stopping = True
        self._io.wake()
        return True

    async def run(self) -> None:
        """Connect and exchange messages until stopped."""
        end: TallymarkError = Closed("the service client was closed before the service had answered")
        try:
            await self._serve()
        except Exception as fault:
            _events.fault("line.failed", instant=self._instant)
            end = ServiceUnavailable(f"the service client failed: {fault!r}; its log has the traceback")
        self.stop()
        self._accept_requests()
        self._pending.fail_all(end)
        self._io.close()

    async def _serve(self) -> None:
        failures = 0
        while self._accept_requests():
            if self._pending.is_idle:
                await self._io.wait(None)
                continue
            if self._shutdown_error is not None:
                self._pending.fail_all(self._shutdown_error)
                continue
            try:
                timeout_s = self._connect_timeout_s()
                ends_at = self._io.time() + timeout_s
                stream = await self._io.connect(self._address.host, self._address.port, timeout_s)
                with contextlib.closing(stream):
                    session = await self._authenticate(stream, ends_at)
                    failures, self._refused_since = 0, None
                    await self._exchange(stream, session)
            except InvalidRequest as error:
                self._pending.fail_all(error)
            except Stopped as error:
                self._shutdown_error = error
            except (OSError, ServiceUnavailable) as problem:
                address = f"{self._address.host}:{self._address.port}"
                _events.info("line.lost", instant=self._instant, address=address, reason=problem)
                self._pending.lost(str(problem))
                self._check_refusals(problem)
                await self._pause(failures)
                failures += 1

    def _accept_requests(self) -> bool:
        """Take submitted requests, expire those past their deadline; return False when the connection is to end."""
        with self._lock:  # also while they are added: in between the connection would look idle
            for request in self._inbox:
                self._pending.add(request)
            self._inbox.clear()
        self._pending.expire(self._io.time(), self._no_response)
        return not self._is_stopping

    async def _authenticate(self, stream: ByteStream, ends_at: float) -> "ClientSession":
        """Authenticate. Raises TimeoutError, NotAuthenticated, or the service's refusal of this client."""
        session = ClientSession(self._address, self._instant, nonce=self._random.randbytes(NONCE_BYTES))
        while not session.is_authenticated:
            left_s = ends_at - self._io.time()
            if left_s <= 0 or self._is_stopping:
                raise TimeoutError("the service did not authenticate itself in time")
            try:
                session.receive(await stream.exchange(session.outgoing, left_s))
            except ConnectionResetError as error:
                raise ConnectionResetError(
                    "the service closed the connection at once: has it reached its limit of connections?"
                ) from error
        return session

    async def _exchange(self, stream: ByteStream, session: "ClientSession") -> None:
        while self._accept_requests():
            now = self._io.time()
            for message in self._pending.due_messages(now, session.message_bytes):
                session.send(message)
            data = await stream.exchange(session.outgoing, self._pending.seconds_to_next(now))
            for answer in session.receive(data):
                self._pending.receive(answer, self._io.time())

    def _connect_timeout_s(self) -> float:
        left_s = self._pending.seconds_to_deadline(self._io.time())
        return CONNECT_TIMEOUT_S if left_s is None else min(CONNECT_TIMEOUT_S, max(left_s, 0.01))

    def _check_refusals(self, problem: Exception) -> None:
        """Fail all requests once the machine has refused connections for long enough."""
        now = self._io.time()
        if not isinstance(problem, ConnectionRefusedError):
            self._refused_since = None
        elif self._refused_since is None:
            self._refused_since = now
        elif now - self._refused_since >= REFUSED_S_MAX:
            self._pending.fail_all(
                ServiceUnavailable(
                    f"{self._address.host}:{self._address.port} has refused connections for {REFUSED_S_MAX:g} s: the "
                    "driver, or the job of this ticket, has ended; if not, check ServiceSettings.advertised_host and "
                    "port"
                )
            )

    async def _pause(self, failures: int) -> None:
        """Wait before the next attempt, but not beyond the first deadline."""
        pause_s = min(PAUSE_S_MIN * 2 ** min(failures, 10), PAUSE_S_MAX) * (0.5 + self._random.random())
        ends_at = self._io.time() + pause_s
        while self._accept_requests():
            left_s, deadline_s = ends_at - self._io.time(), self._pending.seconds_to_deadline(self._io.time())
            if left_s <= 0 or deadline_s is None:
                return
            await self._io.wait(min(left_s, deadline_s))

    def _no_response(self, request: AnyPending) -> ServiceUnavailable:
        return ServiceUnavailable(
            f"no answer from the marker service at {self._address.host}:{self._address.port} within "
            f"{request.wait_s:g} s (last: {self._pending.problem}); check that the driver runs, that no firewall is "
            "in between, and that ServiceSettings.advertised_host is an address which this machine can reach"
        )


class ClientSession:
    """Handshake, frames and authentication of one connection. Sans-I/O: the caller moves the bytes."""

    def __init__(self, address: ServiceAddress, instant: str, *, nonce: bytes) -> None:
        self._handshake = ClientHandshake(address.job_key, address.job or instant, nonce=nonce)
        self._reader = FrameReader(ANSWER_BYTES, setting="fixed for all responses but blocks")
        self._session: Session | None = None
        self.outgoing = bytearray(encode_frame(self._handshake.hello()))
        """Bytes to send."""

    @property
    def is_authenticated(self) -> bool:
        return self._session is not None

    @property
    def message_bytes(self) -> int:
        """The largest message that the service accepts."""
        return self._handshake.frame_bytes - MAC_BYTES

    def send(self, request: Request) -> None:
        assert self._session is not None
        self.outgoing += encode_frame(self._session.protect(encode_request(request)))

    def receive(self, data: bytes) -> list[Answer]:
        """Return the responses in these bytes.

        Raises:
            NotAuthenticated: the key, the release or the kind of service differs.
            InvalidRequest: the service refuses to continue, or these bytes are not from it.
            Stopped: the job has ended, and its service with it.
            ServiceUnavailable: the service ended the connection and gave a reason.
        """
        try:
            frames = self._reader.feed(data)
        except InvalidRequest as error:
            if self._session is not None:
                raise
            raise NotAuthenticated(f"the server there is not a tallymark service: {error}") from error
        return [answer for frame in frames if (answer := self._receive(frame)) is not None]

    def _receive(self, frame: bytes) -> Answer | None:
        """Return the response in a frame, which may follow the end of the handshake at once: a refusal does."""
        if self._session is not None:
            return self._response(self._session, frame)
        if (message := self._handshake.receive(frame)) is not None:
            self.outgoing += encode_frame(message)
        if self._handshake.session is not None:
            self._session = self._handshake.session
            limit = max(ANSWER_BYTES, self._handshake.frame_bytes)
            self._reader.raise_limit(limit, setting="the service's own ServiceSettings.frame_bytes")
        return None

    def _response(self, session: Session, frame: bytes) -> Answer:
        answer = decode_answer(session.verify(frame))
        if isinstance(answer, Refusal) and answer.id == WHOLE_CONNECTION:
            is_final = isinstance(answer.error, InvalidRequest | Stopped)
            raise answer.error if is_final else ServiceUnavailable(str(answer.error))
        return answer


class ThreadIo:
    """The ``ClientIo`` of a thread: its coroutines block it and never suspend, so ``run_blocking`` can run them."""

    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        self._tls = tls
        self._lock = threading.Lock()
        self._is_woken = False
        """Whether a byte is on the way to the thread: one is enough for any number of calls of ``wake``."""
        self.wake_reader, self._wake_writer = socket.socketpair()
        self._wake_poll = select.poll()
        self._wake_poll.register(self.wake_reader, select.POLLIN)
        self._stream: _SocketStream | None = None

    def time(self) -> float:
        return time.monotonic()

    async def connect(self, host: str, port: int, timeout_s: float) -> "_SocketStream":
        raw = socket.create_connection((host, port), timeout=timeout_s)
        try:
            tune(raw)
            if self._tls is not None:
                raw = self._tls.wrap_socket(raw, server_hostname=host)
            raw.setblocking(False)
        except BaseException:
            raw.close()
            raise
        self._stream = _SocketStream(raw, self)
        return self._stream

    async def wait(self, timeout_s: float | None) -> None:
        if self._wake_poll.poll(_milliseconds(timeout_s)):
            self.drain()

    def wake(self) -> None:
        with self._lock:
            if not self._is_woken:
                self._is_woken = True
                with contextlib.suppress(OSError):  # closed: the thread has ended
                    self._wake_writer.send(b"\0")

    def drain(self) -> None:
        """Take the byte that ``wake`` sent. One left behind would end each later wait at once."""
        with self._lock:
            if self._is_woken:
                self.wake_reader.recv(1)
                self._is_woken = False

    def close(self) -> None:
        with self._lock:
            self._is_woken = True  # no further byte is needed
            self.wake_reader.close()
            self._wake_writer.close()

    def drop_after_fork(self) -> None:
        """In a forked child: close the child's copies of the descriptors. The parent's connection continues."""
        if self._stream is not None:
            self._stream.raw.close()
        self.wake_reader.close()
        self._wake_writer.close()


class _SocketStream:
    """A non-blocking socket, and a poll of it and of the wake-ups."""

    def __init__(self, raw: socket.socket, io: ThreadIo) -> None:
        self.raw = raw
        self._io = io
        self._poll = select.poll()
        self._poll.register(raw, select.POLLIN)
        self._poll.register(io.wake_reader, select.POLLIN)
        self._waits_to_send = False

    async def exchange(self, outgoing: bytearray, timeout_s: float | None) -> bytes:
        if outgoing and not self._waits_to_send:
            self._send(outgoing)
        ready = dict(self._poll.poll(_milliseconds(timeout_s)))
        if self._io.wake_reader.fileno() in ready:
            self._io.drain()
        events = ready.get(self.raw.fileno(), 0)
        if events & select.POLLOUT:
            self._send(outgoing)
        return self._receive() if events & ~select.POLLOUT else b""

    def close(self) -> None:
        """Close so that the service notices even if a forked child has a copy of the descriptor."""
        with contextlib.suppress(OSError):
            self.raw.shutdown(socket.SHUT_RDWR)
        self.raw.close()

    def _send(self, outgoing: bytearray) -> None:
        with contextlib.suppress(*WOULD_BLOCK):
            del outgoing[: self.raw.send(outgoing)]
        if self._waits_to_send != bool(outgoing):
            self._waits_to_send = bool(outgoing)
            self._poll.modify(self.raw, select.POLLIN | (select.POLLOUT if outgoing else 0))

    def _receive(self) -> bytes:
        try:
            data = receive(self.raw, _READ_BYTES)
        except WOULD_BLOCK:
            return b""
        if not data:
            raise ConnectionResetError("the service closed the connection")
        return data


def _milliseconds(timeout_s: float | None) -> int | None:
    return None if timeout_s is None else math.ceil(timeout_s * 1000)


def run_blocking(coroutine: Coroutine[object, None, None]) -> None:
    """Run a coroutine that never suspends, such as ``ClientConnection.run`` over a ``ThreadIo``."""
    try:
        coroutine.send(None)
    except StopIteration:
        return
    raise RuntimeError("the coroutine suspended: its ClientIo does not block")
