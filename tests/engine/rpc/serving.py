"""A server on a real loopback socket, what it was asked to create, and a peer that says exactly what it is told."""

import secrets
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager, ExitStack, asynccontextmanager, suppress
from dataclasses import replace
from typing import Any, Self, TypeVar

import anyio
import anyio.lowlevel
import anyio.to_thread
from anyio.abc import SocketAttribute, SocketStream

from tallymark.engine.errors import InvalidRequest, Stopped
from tallymark.engine.rpc.client import JobClient
from tallymark.engine.rpc.connection import ClientSession
from tallymark.engine.rpc.dispatcher import BlockOf, Handler, Settle, as_refusal
from tallymark.engine.rpc.handshake import ServiceAddress
from tallymark.engine.rpc.messages import Ack, Answer, CreateMarkers, Request
from tallymark.engine.rpc.server import JobServer
from tallymark.engine.settings import ServiceSettings

SECRET = b"a secret of thirty-two bytes....".ljust(32)
INSTANT = "20260102030405006"
READ_BYTES = 65536
PATIENCE_S = 50.0
"""No test waits longer for anything."""

T = TypeVar("T")


class Ledger:
    """A ``create`` that remembers. Paths that begin with ``hold`` are durable once ``released`` is set."""

    def __init__(self) -> None:
        self.created: list[tuple[str, str, str]] = []
        self.begun: list[str] = []
        self.released = anyio.Event()

    async def create(self, instant: str, paths: Sequence[str], io: str) -> None:
        self.begun += paths
        if paths[0].startswith("hold"):
            await self.released.wait()
        self.created += [(instant, path, io) for path in paths]


class Table:
    """A ``look_up`` that has these blocks at position 7, and nothing at any other."""

    def __init__(self, **blocks: bytes) -> None:
        self.blocks = blocks
        self.asked: list[str] = []

    async def look_up(self, position: int, log_hash: str) -> BlockOf:
        if (position, log_hash) != (7, "hash"):
            raise InvalidRequest(f"position {position} is one of another log")
        return self._block

    async def _block(self, partition: str) -> bytes:
        self.asked.append(partition)
        return self.blocks.get(partition, b"")


CreateMany = Callable[[str, Sequence[CreateMarkers], Settle[CreateMarkers]], Awaitable[None]]
Create = Callable[[str, Sequence[str], str], Awaitable[None]]
LookUpAt = Callable[[int, str], Awaitable[BlockOf]]
CachedBlocks = Callable[[int, str, Sequence[str]], Sequence[bytes] | None]


class Functions(Handler):
    """A ``Handler`` of functions."""

    def __init__(
        self, create_many: CreateMany, look_up: LookUpAt | None = None, cached_blocks: CachedBlocks | None = None
    ) -> None:
        self._create_many = create_many
        self._look_up = look_up
        self._cached_blocks = cached_blocks

    async def create_markers(self, job: str, requests: Sequence[CreateMarkers], settle: Settle[CreateMarkers]) -> None:
        await self._create_many(job, requests, settle)

    def cached_blocks(
        self, job: str, position: int, log_hash: str, partitions: Sequence[str]
    ) -> Sequence[bytes] | None:
        return None if self._cached_blocks is None else self._cached_blocks(position, log_hash, partitions)

    async def look_up(self, job: str, position: int, log_hash: str) -> BlockOf:
        if self._look_up is None:
            return await super().look_up(job, position, log_hash)
        return await self._look_up(position, log_hash)


def one_by_one(create: Create) -> CreateMany:
    """Each request in a task, settled by itself."""

    async def create_many(instant: str, requests: Sequence[CreateMarkers], settle: Settle[CreateMarkers]) -> None:
        async def create_one(request: CreateMarkers) -> None:
            try:
                await create(instant, request.paths, request.io)
            except Exception as error:
                await settle([(request, as_refusal(error, instant))])
            else:
                await settle([(request, None)])

        async with anyio.create_task_group() as tasks:
            for request in requests:
                tasks.start_soon(create_one, request)

    return create_many


@asynccontextmanager
async def running(
    create_many: CreateMany,
    *,
    look_up: LookUpAt | None = None,
    cached_blocks: CachedBlocks | None = None,
    shutdown_error: Stopped | None = None,
    **settings: Any,
) -> AsyncIterator[JobServer]:
    """A server that runs until the block ends, or the test's patience."""
    handler = Functions(create_many, look_up, cached_blocks)
    with anyio.fail_after(PATIENCE_S):
        async with anyio.create_task_group() as tasks:
            server = JobServer(SECRET, ServiceSettings(**settings), handler, shutdown_error=shutdown_error)
            await tasks.start(lambda *, task_status: server.run(task_status=task_status))
            yield server
            tasks.cancel_scope.cancel()


def ask(number: int, *paths: str) -> CreateMarkers:
    return CreateMarkers(number, paths, "CREATE")


def serving(create: Create, **parts: Any) -> AbstractAsyncContextManager[JobServer]:
    """``running``, of markers that are made one request at a time."""
    return running(one_by_one(create), **parts)


@asynccontextmanager
async def door(to: ServiceAddress, *, port: int = 0, losses: int = 0) -> AsyncIterator[ServiceAddress]:
    """Another address of a service, where the first few connections are lost."""
    left = losses

    async def pass_on(near: SocketStream) -> None:
        nonlocal left
        left -= 1
        async with near:
            if left < 0:
                async with await anyio.connect_tcp(to.host, to.port) as far, anyio.create_task_group() as tasks:
                    tasks.start_soon(_copy, near, far)
                    tasks.start_soon(_copy, far, near)

    listener = await anyio.create_tcp_listener(local_host=to.host, local_port=port)
    async with listener, anyio.create_task_group() as tasks:
        tasks.start_soon(listener.serve, pass_on)
        yield replace(to, port=listener.extra(SocketAttribute.local_port))  # no Django here
        tasks.cancel_scope.cancel()


async def _copy(source: SocketStream, sink: SocketStream) -> None:
    # The other side may be gone, which the end of a stream tells by an OSError as it is.
    with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError, OSError):
        async for data in source:
            await sink.send(data)
        await sink.send_eof()


async def in_thread(function: Callable[..., T], *arguments: object) -> T:
    return await anyio.to_thread.run_sync(lambda: function(*arguments), abandon_on_cancel=True)


async def settled(future: Future[Any]) -> BaseException | None:
    return await in_thread(future.exception, PATIENCE_S)


async def until(condition: Callable[[], bool]) -> None:
    """Let the loop run until the condition holds."""
    with anyio.fail_after(PATIENCE_S):
        while not condition():  # another thread's or a socket's doing, so there is no event
            await anyio.lowlevel.checkpoint()


class Peer:
    """An authenticated connection, driven step by step; blocking."""

    def __init__(self, address: ServiceAddress, instant: str = INSTANT, *, is_begun_only: bool = False) -> None:
        """With ``is_begun_only`` it has only named its job, until ``authenticate``."""
        self.raw = socket.create_connection((address.host, address.port), timeout=PATIENCE_S)
        self._session = ClientSession(address, instant, nonce=secrets.token_bytes(32))
        try:
            self.send()
            if not is_begun_only:
                self.authenticate()
        except BaseException:
            self.raw.close()
            raise

    def authenticate(self) -> None:
        while not self._session.is_authenticated:
            data = self.raw.recv(READ_BYTES)
            if not data:
                raise ConnectionResetError("the server closed the connection")
            self._session.receive(data)
            self.send()

    def say(self, *requests: Request) -> Self:
        for request in requests:
            self._session.send(request)
        return self

    def say_bytes(self, data: bytes) -> Self:
        """Past the session's protection."""
        self._session.outgoing += data
        return self

    def send(self) -> None:
        self.raw.sendall(self._session.outgoing)
        self._session.outgoing.clear()

    def hear(self, count: int) -> list[Answer]:
        """Return the next answers, in the order of their arrival; sends what was said."""
        answers: list[Answer] = []
        while len(answers) < count:
            answers += self.listen(PATIENCE_S)
        return answers

    def listen(self, timeout_s: float) -> list[Answer]:
        """Return the answers in one read; none after the timeout. Raises OSError when the connection is closed."""
        self.send()
        self.raw.settimeout(timeout_s)
        try:
            data = self.raw.recv(READ_BYTES)
        except (TimeoutError, BlockingIOError):
            return []
        if not data:
            raise ConnectionResetError("the server closed the connection")
        return self._session.receive(data)

    def reset(self) -> None:
        """Vanish without a goodbye: the other side gets a reset."""
        self.raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        self.raw.close()

    def close(self) -> None:
        self.raw.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def exchange(address: ServiceAddress, data: bytes) -> bytes:
    """Everything that the server answers to these bytes of a stranger until it closes the connection."""
    with socket.create_connection((address.host, address.port), timeout=PATIENCE_S) as raw:
        raw.sendall(data)
        received = b""
        while chunk := raw.recv(4096):
            received += chunk
        return received


@asynccontextmanager
async def peer_of(server: AbstractAsyncContextManager[JobServer]) -> AsyncIterator[tuple[JobServer, Peer]]:
    """A server that runs, and an authenticated peer of it."""
    async with server as running:
        with await in_thread(Peer, running.address(INSTANT)) as peer:
            yield running, peer


@asynccontextmanager
async def peers_of(
    server: AbstractAsyncContextManager[JobServer], *instants: str
) -> AsyncIterator[tuple[JobServer, list[Peer]]]:
    """A server that runs, and an authenticated peer of each instant."""
    async with server as running:
        with ExitStack() as stack:
            yield running, [stack.enter_context(await in_thread(Peer, running.address(at), at)) for at in instants]


async def is_well(server: JobServer) -> None:
    """Another task of the same job gets its ack."""
    with await in_thread(Peer, server.address(INSTANT)) as peer:
        assert await in_thread(peer.say(ask(1, "well")).hear, 1) == [Ack(1)]


@asynccontextmanager
async def client_of(
    server: AbstractAsyncContextManager[JobServer], wait_s: float = PATIENCE_S
) -> AsyncIterator[tuple[JobServer, JobClient]]:
    """A server that runs, and a client of it."""
    async with server as running:
        with JobClient(running.address(INSTANT), INSTANT, wait_s=wait_s) as client:
            yield running, client
