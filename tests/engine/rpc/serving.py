"""A server on a real loopback socket, what it was asked to create, and a peer that says exactly what it is told."""

import socket
import sys
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Self, TypeVar

import anyio
import anyio.lowlevel
import anyio.to_thread
from anyio.abc import SocketAttribute, SocketStream

from tallymark.engine.errors import InvalidRequest
from tallymark.engine.rpc.address import ServiceAddress
from tallymark.engine.rpc.connection import dial
from tallymark.engine.rpc.handler import BlockOf, Create, CreateEach, one_by_one
from tallymark.engine.rpc.messages import Answer, Request
from tallymark.engine.rpc.server import JobServer
from tallymark.engine.settings import ServiceSettings

SECRET = b"a secret of thirty-two bytes....".ljust(32)
INSTANT = "20260102030405006"
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


@asynccontextmanager
async def running(create_each: CreateEach, **parts: Any) -> AsyncIterator[JobServer]:
    """A server that runs until the block ends, or the test's patience; parts that it does not know are settings."""
    known = {name: parts.pop(name) for name in ("look_up", "at_hand", "farewell") if name in parts}
    with anyio.fail_after(PATIENCE_S):
        async with anyio.create_task_group() as tasks:
            server = JobServer(SECRET, ServiceSettings(**parts), create_each, **known)
            await tasks.start(lambda *, task_status: server.run(task_status=task_status))
            yield server
            tasks.cancel_scope.cancel()


def serving(create: Create, **parts: Any) -> AbstractAsyncContextManager[JobServer]:
    """``running``, of markers that are made one request at a time."""
    return running(one_by_one(create), **parts)


async def created_by(program: str) -> list[str]:
    """The paths whose markers a Python program has made, in their order; those on hold once it has asked for "release".

    Its arguments are the port and the key of a served job. From Python 3.12 on a fork beside threads warns, and Spark's
    daemon forks before there are any.
    """
    ledger = Ledger()

    async def create(instant: str, paths: Sequence[str], io: str) -> None:
        if paths[0] == "release":
            ledger.released.set()
        await ledger.create(instant, paths, io)

    async with serving(create) as server:
        address = server.address(INSTANT)
        command = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", program]
        run = await anyio.run_process(
            [*command, str(address.port), address.job_key.hex()], cwd=Path(__file__).parents[3], check=False
        )
        assert (run.returncode, run.stderr.decode()) == (0, "")
    return [path for _, path, _ in ledger.created]


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


async def until(condition: Callable[[], bool]) -> None:
    """Let the loop run until the condition holds."""
    with anyio.fail_after(PATIENCE_S):
        while not condition():  # another thread's or a socket's doing, so there is no event
            await anyio.lowlevel.checkpoint()


class Peer:
    """An authenticated connection, driven step by step; blocking."""

    def __init__(self, address: ServiceAddress, instant: str = INSTANT) -> None:
        self.call = dial(address, instant, timeout_s=PATIENCE_S)
        self._wake, self._other_end = socket.socketpair()

    def say(self, *requests: Request) -> Self:
        for request in requests:
            self.call.say(request)
        return self

    def say_bytes(self, data: bytes) -> Self:
        """Past the session's protection."""
        self.call._outgoing += data
        return self

    def hear(self, count: int) -> list[Answer]:
        """The next answers, in the order in which they come; sends what was said."""
        answers: list[Answer] = []
        ends_at = time.monotonic() + PATIENCE_S
        while len(answers) < count and time.monotonic() < ends_at:
            answers += self.call.listen(self._wake, 0.2)
        return answers

    def reset(self) -> None:
        """Vanish without a goodbye: the other side gets a reset."""
        self.call._raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        self.close()

    def close(self) -> None:
        self.call.drop_after_fork()
        self._wake.close()
        self._other_end.close()

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
