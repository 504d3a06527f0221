"""Clients that cost a service something and give it nothing: many connections, slow ones, large requests, requests for
a store that does not answer, and browsers that poll its pages.

Run as a child: a line ``{"kind", "port", "count", "folder"}`` starts them, for browsers with the paths of ``pages`` and
how many times ``faster`` they are. The answer says how many are connected. The next line ends them; its answer says how
many pages were received.
"""

import json
import re
import sys
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, TextIO
from urllib.parse import urlencode

import anyio
import anyio.to_thread
from anyio.abc import SocketStream, TaskStatus
from anyio.streams.buffered import BufferedByteReceiveStream

from tallymark.bench.child import answer

BYTE_S = 1.0
"""Time between two bytes of a slow client."""

BUSY_S = 0.5
"""Time until a client whose connection has ended connects again."""

FIRST_S = 5.0
"""Time until all browsers have requested their first page, one after the other."""

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


def polling(path: str, *, first_s: float, faster: float, received: list[str]) -> Stranger:
    """Return what requests a page as an open browser does: again and again while it is open, at the interval that the
    page names, or in a part of it.
    """
    request = f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nHX-Request: true\r\n\r\n".encode()
    due = 0.0

    async def poll(stream: SocketStream, connected: TaskStatus[None]) -> None:
        nonlocal due
        connected.started()
        due, buffered = due or anyio.current_time() + first_s, BufferedByteReceiveStream(stream)
        while True:
            with anyio.CancelScope(deadline=due):
                await buffered.receive()  # nothing but the end of a connection that is idle
            await stream.send(request)
            head = await buffered.receive_until(b"\r\n\r\n", 65536)
            length = re.search(rb"(?mi)^content-length: (\d+)", head)
            body = await buffered.receive_exactly(int(length[1])) if length else b""
            interval = re.search(rb'data-hx-trigger="every ([\d.]+)s', body)
            if interval is None:
                raise ValueError(f"{path} has not answered with a page that is refreshed: {head.decode()}")
            received.append(path)
            due = max(due + float(interval[1]) / faster, anyio.current_time())

    return poll


def main(lines: TextIO, answers: TextIO) -> None:
    anyio.run(_main, lines, answers, backend="trio")


async def _main(lines: TextIO, answers: TextIO) -> None:
    while line := await anyio.to_thread.run_sync(lines.readline):
        asked, received = json.loads(line), list[str]()
        async with anyio.create_task_group() as tasks:
            await _connect(tasks.start, asked, received)
            answer(answers, {"connected": asked["count"]})
            await anyio.to_thread.run_sync(lines.readline)
            tasks.cancel_scope.cancel()
        answer(answers, {"pages": len(received)})


async def _connect(start: Callable[..., Awaitable[Any]], asked: dict[str, Any], received: list[str]) -> None:
    opening = anyio.CapacityLimiter(OPENED_AT_ONCE)

    async def one(stranger: Stranger) -> None:
        async with opening:
            await start(_again_and_again, asked["port"], stranger)

    async with anyio.create_task_group() as tasks:
        for number in range(asked["count"]):
            tasks.start_soon(one, _stranger(asked, number, received))


def _stranger(asked: dict[str, Any], number: int, received: list[str]) -> Stranger:
    if asked["kind"] != "pages":
        return {"idle": idle, "slow": slow, "large": large, "waiting": waiting(asked["folder"])}[asked["kind"]]
    first_s = FIRST_S * number / asked["count"] / asked["faster"]
    path = asked["pages"][number % len(asked["pages"])]
    return polling(path, first_s=first_s, faster=asked["faster"], received=received)


async def _again_and_again(
    port: int, stranger: Stranger, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED
) -> None:
    """Connect, and again whenever the service has ended the connection."""
    while True:
        with suppress(OSError, anyio.EndOfStream, anyio.IncompleteRead, anyio.BrokenResourceError):
            async with await anyio.connect_tcp("127.0.0.1", port) as stream:
                await stranger(stream, task_status)
        task_status = anyio.TASK_STATUS_IGNORED
        await anyio.sleep(BUSY_S)


if __name__ == "__main__":
    main(sys.stdin, sys.stdout)
