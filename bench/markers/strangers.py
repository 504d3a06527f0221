"""Clients that cost a service something and give it nothing: many connections, slow ones, large requests, and requests
for a store that does not answer.

Run as a child: a line ``{"kind", "port", "count", "folder"}`` starts them, and the answer says how many are connected.
The next line ends them.
"""

import json
import sys
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, TextIO
from urllib.parse import urlencode

import anyio
import anyio.to_thread
from anyio.abc import SocketStream, TaskStatus

from tallymark.bench.child import answer

BYTE_S = 1.0
"""Time between two bytes of a slow client."""

BUSY_S = 0.5
"""Time until a client whose connection has ended connects again."""

OPENED_AT_ONCE = 100
"""Connections that are being opened at a time: fewer than a service takes of clients that have sent nothing yet."""

REQUEST = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"

Stranger = Callable[[SocketStream, TaskStatus[None]], Awaitable[None]]


async def idle(stream: SocketStream, connected: TaskStatus[None]) -> None:
    """Send one whole request, and keep the connection."""
    await stream.send(REQUEST)
    await stream.receive()
    connected.started()
    await anyio.sleep_forever()


async def slow(stream: SocketStream, connected: TaskStatus[None]) -> None:
    """Send a request byte by byte (a slowloris)."""
    connected.started()
    while True:
        for byte in REQUEST[:-1]:
            await stream.send(bytes([byte]))
            await anyio.sleep(BYTE_S)


async def large(stream: SocketStream, connected: TaskStatus[None]) -> None:
    """Send many requests at once, and one that is larger than any limit."""
    connected.started()
    await stream.send(REQUEST * 32)
    await stream.send(b"GET /" + b"a" * 256 * 1024)
    with suppress(anyio.EndOfStream):
        while True:
            await stream.receive()


def waiting(folder: str) -> Stranger:
    """Return what requests a marker of a table, and waits for the answer."""

    async def wait(stream: SocketStream, connected: TaskStatus[None]) -> None:
        query = urlencode({"markerdirpath": folder, "markername": "a.parquet.marker.CREATE"})
        await stream.send(f"POST /v1/hoodie/marker/create?{query} HTTP/1.1\r\n\r\n".encode())
        connected.started()
        await stream.receive()

    return wait


def main(lines: TextIO, answers: TextIO) -> None:
    anyio.run(_main, lines, answers, backend="trio")


async def _main(lines: TextIO, answers: TextIO) -> None:
    while line := await anyio.to_thread.run_sync(lines.readline):
        asked = json.loads(line)
        async with anyio.create_task_group() as tasks:
            await _connect(tasks.start, asked)
            answer(answers, {"connected": asked["count"]})
            await anyio.to_thread.run_sync(lines.readline)
            tasks.cancel_scope.cancel()
        answer(answers, {"ended": True})


async def _connect(start: Callable[..., Awaitable[Any]], asked: dict[str, Any]) -> None:
    kinds = {"idle": idle, "slow": slow, "large": large, "waiting": waiting(asked["folder"])}
    opening = anyio.CapacityLimiter(OPENED_AT_ONCE)

    async def one() -> None:
        async with opening:
            await start(_again_and_again, asked["port"], kinds[asked["kind"]])

    async with anyio.create_task_group() as tasks:
        for _ in range(asked["count"]):
            tasks.start_soon(one)


async def _again_and_again(
    port: int, stranger: Stranger, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED
) -> None:
    """Connect, and again whenever the service has ended the connection."""
    while True:
        with suppress(OSError, anyio.EndOfStream, anyio.BrokenResourceError):
            async with await anyio.connect_tcp("127.0.0.1", port) as stream:
                await stranger(stream, task_status)
        task_status = anyio.TASK_STATUS_IGNORED
        await anyio.sleep(BUSY_S)


if __name__ == "__main__":
    main(sys.stdin, sys.stdout)
