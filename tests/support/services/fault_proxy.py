"""A proxy over real sockets in front of a store that speaks HTTP/1.1: what is lost, late, torn or refused there.

It reads a request to its end, lets the plan choose a fault, and sends it on over a connection of its own. What it has
begun to send on, it finishes, whether or not the client is still there: so do real networks and load balancers.
"""

import asyncio
import re
import socket
import struct
import threading
from collections import Counter
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from tests.support.services.fault_plan import Chance, Fault, FaultPlan, Kind, Scripted
from tests.support.services.http_message import HEAD_BYTES_MAX, Answer, Request, read_answer, read_request

_START_S = 30.0
_PIECE_BYTES = 4096
_LOST = (OSError, asyncio.IncompleteReadError)


class FaultProxy:
    """``endpoint`` stands for the server's own. Without a script or a chance it changes nothing."""

    def __init__(self, upstream: str) -> None:
        """``upstream`` is the server's ``http://host:port``."""
        host, _, port = upstream.removeprefix("http://").partition(":")
        self._upstream = (host, int(port))
        self._plan = FaultPlan()
        self._lock = threading.Lock()
        self._tasks: set[asyncio.Task[None]] = set()
        self._busy = 0
        self.endpoint = ""

    def script(self, fault: Fault, *, method: str, path: str = "", skip: int = 0, times: int = 1) -> Scripted:
        """Let the next ``times`` requests of the method meet the fault whose target matches, ``skip`` of them aside.

        ``path`` is a regular expression, sought anywhere in the unquoted target. The result counts in ``happened``.
        """
        scripted = Scripted(fault, method, re.compile(path), skip, times)
        with self._lock:
            self._plan.scripted.append(scripted)
        return scripted

    def let_chance(self, chance: Chance | None) -> None:
        """From now on; None for fair weather."""
        with self._lock:
            self._plan.chance = chance

    @property
    def faults(self) -> Counter[str]:
        """How often each has happened."""
        with self._lock:
            return Counter(self._plan.faults)

    @property
    def requests(self) -> Counter[str]:
        """How many have come, by method."""
        with self._lock:
            return Counter(self._plan.requests)

    @property
    def under_way(self) -> int:
        """Requests that have come and are not answered, also where their client has gone; and repeats to come."""
        return self._busy

    async def serve(self, started: threading.Event, stop: asyncio.Event) -> None:
        server = await asyncio.start_server(self._connected, "127.0.0.1", 0, limit=HEAD_BYTES_MAX)
        self.endpoint = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        started.set()
        await stop.wait()
        server.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._spawn(self._converse(reader, writer))

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Requests of one connection, one after the other, until it ends or a fault ends it."""
        try:
            while request := await read_request(reader, writer):
                with self._lock:
                    fault = self._plan.next(request)
                self._busy += 1
                try:
                    if not await self._answer(request, fault, writer):
                        break
                finally:
                    self._busy -= 1
        except _LOST:
            pass  # the client's affair
        finally:
            writer.close()

    async def _answer(self, request: Request, fault: Fault | None, writer: asyncio.StreamWriter) -> bool:
        """Whether the connection goes on."""
        kind = fault.kind if fault else None
        if fault is None:
            return await _send(writer, (await self._forward(request)).encode(request.method))
        if kind in (Kind.STATUS_BEFORE, Kind.FALSE_412):
            return await _send(writer, fault.answer().encode(request.method))
        if kind is Kind.RESET_BEFORE:
            return _reset(writer)
        answer = (await self._forward_amid(fault, request)).encode(request.method)
        if kind is Kind.STATUS_AFTER:
            return await _send(writer, fault.answer().encode(request.method))
        if kind is Kind.RESET_AFTER:
            return _reset(writer)
        if kind is Kind.TORN:
            return await _tear(writer, answer)
        return await _send(writer, answer, bytes_per_s=fault.bytes_per_s if kind is Kind.SLOW else None)

    async def _forward_amid(self, fault: Fault, request: Request) -> Answer:
        """The answer to a request that is late, or is done more than once."""
        if fault.kind is Kind.DELAY:
            await asyncio.sleep(fault.delay_s)
        if fault.kind is Kind.SLOW:
            await asyncio.sleep(len(request.body) / fault.bytes_per_s)
        if fault.kind is Kind.TWICE:
            await self._forward(request)
        if fault.kind is Kind.AGAIN:
            self._busy += 1
            self._spawn(self._repeat(request, fault.delay_s))
        return await self._forward(request)

    async def _repeat(self, request: Request, delay_s: float) -> None:
        try:
            await asyncio.sleep(delay_s)
            await self._forward(request)
        finally:
            self._busy -= 1

    async def _forward(self, request: Request) -> Answer:
        reader, writer = await asyncio.open_connection(*self._upstream, limit=HEAD_BYTES_MAX)
        try:
            writer.write(request.encode())
            await writer.drain()
            return await read_answer(reader, method=request.method)
        finally:
            writer.close()


async def _send(writer: asyncio.StreamWriter, data: bytes, *, bytes_per_s: float | None = None) -> bool:
    if bytes_per_s is None:
        writer.write(data)
        await writer.drain()
        return True
    for start in range(0, len(data), _PIECE_BYTES):
        piece = data[start : start + _PIECE_BYTES]
        writer.write(piece)
        await writer.drain()
        await asyncio.sleep(len(piece) / bytes_per_s)
    return True


async def _tear(writer: asyncio.StreamWriter, data: bytes) -> bool:
    """Send the answer up to the middle of its body; one without a body loses the end of its head."""
    body = data.partition(b"\r\n\r\n")[2]
    writer.write(data[: len(data) - max(len(body) // 2, 1)])
    await writer.drain()
    return _reset(writer)


def _reset(writer: asyncio.StreamWriter) -> bool:
    """RST instead of FIN: what was sent and not yet read is lost too."""
    line = writer.get_extra_info("socket")
    line.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()
    return False


@contextmanager
def fault_proxy(upstream: str) -> Iterator[FaultProxy]:
    """A proxy on a free port of this machine, on a thread of its own; what is under way at the end is dropped."""
    proxy, started, stop = FaultProxy(upstream), threading.Event(), asyncio.Event()
    loop = asyncio.new_event_loop()

    def run() -> None:
        with suppress(asyncio.CancelledError):
            loop.run_until_complete(proxy.serve(started, stop))
        loop.close()

    thread = threading.Thread(target=run, name="fault proxy", daemon=True)
    thread.start()
    assert started.wait(_START_S), "the fault proxy did not start"
    try:
        yield proxy
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join(_START_S)
