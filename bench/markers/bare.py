"""What acks would add to puts by the least program that could give them: what this machine and its Python take for the
hops alone.

Quiet, one thing after the other. In process: a task begins the put, and who asked waits for its end; a put that was the
asker's own would end with it. By the network: a line comes over a socket, a task puts, a line goes back. No queue, no
names, no numbers, nothing to count, nobody to authenticate.
"""

import contextlib
import socket
import statistics
import tempfile
import time
from itertools import count
from pathlib import Path

import anyio
import trio

from tallymark.backends.measured import MeasuredBackend
from tallymark.bench.markers.delayed import DelayedMemory
from tallymark.bench.markers.put_meter import PutMeter
from tallymark.bench.views.child import child

LINE = b"a name of the size of a data file's, with its partition, task, attempt and instant, in one line of text\n"

_SERVER = "tallymark.bench.markers.bare_server"
_WARM_UP = 20


def bare_ratio(put_s: float, *, is_far: bool, seconds: float) -> float:
    """Mean ack over mean put. Blocking, some ``seconds``. Raises ChildFailed."""
    if is_far:
        return _far(put_s, seconds)
    ratio: float = trio.run(_near, put_s, seconds)
    return ratio


async def _near(put_s: float, seconds: float) -> float:
    meter, numbers = PutMeter(), count()
    backend = MeasuredBackend(DelayedMemory(put_s), meter)
    acks: list[float] = []

    async def carry(done: anyio.Event) -> None:
        await backend.put_new(f"{next(numbers)}", LINE)
        done.set()

    async with anyio.create_task_group() as tasks:
        ends = time.perf_counter() + seconds
        while (asked := time.perf_counter()) < ends:
            done = anyio.Event()
            tasks.start_soon(carry, done)
            await done.wait()
            acks.append(time.perf_counter() - asked)
    return statistics.fmean(acks) / (meter.puts_s / meter.puts)


def _far(put_s: float, seconds: float) -> float:
    with tempfile.TemporaryDirectory() as folder, child(_SERVER, Path(folder) / "bare-server.log") as server:
        port = server.ask({"put_s": put_s})["port"]
        with contextlib.closing(socket.create_connection(("127.0.0.1", port))) as peer:
            peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for _ in range(_WARM_UP):
                _ask(peer)
            before = server.ask({})
            acks: list[float] = []
            ends = time.perf_counter() + seconds
            while (asked := time.perf_counter()) < ends:
                _ask(peer)
                acks.append(time.perf_counter() - asked)
            after = server.ask({})
    mean_put_s: float = (after["puts_s"] - before["puts_s"]) / (after["puts"] - before["puts"])
    return statistics.fmean(acks) / mean_put_s


def _ask(peer: socket.socket) -> None:
    peer.sendall(LINE)
    while not peer.recv(4096).endswith(b"\n"):
        pass
