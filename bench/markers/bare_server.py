"""The process that ``bare`` asks: each line is put as it is, in a task of its own, and answered with a line.

One line of JSON comes in and says how long a put takes; one goes out with the port; one comes in for each reading.
"""

import functools
import json
import sys
from itertools import count
from typing import Any, TextIO

import anyio
import anyio.to_thread
from anyio.abc import SocketStream

from tallymark.backends.measured import MeasuredBackend
from tallymark.bench.markers.delayed import DelayedMemory
from tallymark.bench.markers.put_meter import PutMeter
from tallymark.engine.rpc.tcp import tune


async def main(lines: TextIO, answers: TextIO) -> None:
    meter, numbers = PutMeter(), count()
    backend = MeasuredBackend(DelayedMemory(json.loads(lines.readline())["put_s"]), meter)

    async def carry(peer: SocketStream, line: bytes) -> None:
        await backend.put_new(f"{next(numbers)}", line)
        await peer.send(b"done\n")

    async def serve(peer: SocketStream) -> None:
        tune(peer.extra(anyio.abc.SocketAttribute.raw_socket))  # noqa: S610  # no Django here
        async with peer, anyio.create_task_group() as tasks:
            async for line in peer:  # one at a time comes
                tasks.start_soon(carry, peer, line)

    async with anyio.create_task_group() as tasks:
        listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
        tasks.start_soon(listener.serve, serve)
        _answer(answers, {"port": listener.extra(anyio.abc.SocketAttribute.local_port)})  # noqa: S610
        while await anyio.to_thread.run_sync(lines.readline):
            _answer(answers, {"puts": meter.puts, "puts_s": meter.puts_s})
        tasks.cancel_scope.cancel()


def _answer(answers: TextIO, fields: dict[str, Any]) -> None:
    answers.write(json.dumps(fields) + "\n")
    answers.flush()


if __name__ == "__main__":
    anyio.run(functools.partial(main, sys.stdin, sys.stdout), backend="trio")
