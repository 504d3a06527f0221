"""Inputs that no client of ours sends, on each listener of a real service: other clients are served, and its memory
stays small.
"""

import json
import socket
from contextlib import suppress
from pathlib import Path
from random import Random

import anyio
import psutil
import pytest

from tallymark.engine.rpc.frames import encode_frame
from tests.cli.test_serve import ask, key_of, prepare, request, serving, state
from tests.engine.serve.hudi_table import INSTANT
from tests.fuzz.targets import http_requests, server_handshake

__all__ = ["state"]

GROWTH_BYTES = 64 << 20

INPUTS = [pytest.param(300, id="300 inputs"), pytest.param(10_000, id="10,000 inputs", marks=pytest.mark.release)]


def damaged(seeds: list[bytes], random: Random) -> bytes:
    """A real input with a few parts replaced, cut off or repeated, or arbitrary bytes."""
    if random.random() < 0.1:
        return random.randbytes(random.randrange(5000))
    data = bytearray(random.choice(seeds))
    for _ in range(random.randrange(1, 5)):
        start = random.randrange(len(data) + 1)
        stop = min(len(data), start + random.randrange(10))
        data[start:stop] = random.choice(
            (random.randbytes(random.randrange(9)), bytes(data[:stop]), b"\r\n", b"\xff" * 4)
        )
    return bytes(data)


def send(port: int, data: bytes, random: Random) -> None:
    """Send it, at once or in pieces, and end the connection in one of the ways there are."""
    with socket.create_connection(("127.0.0.1", port), timeout=10) as raw, suppress(ConnectionError):
        cut = random.randrange(len(data) + 1)
        for part in (data[:cut], data[cut:]):
            raw.sendall(part)
        if random.random() < 0.3:
            return
        with suppress(OSError):  # the service has ended it
            raw.shutdown(socket.SHUT_WR)
        while raw.recv(65536):
            pass


@pytest.mark.slow
@pytest.mark.parametrize("inputs", INPUTS)
def test_inputs_of_every_kind_end_with_their_connection(tmp_path: Path, inputs: int) -> None:
    anyio.run(prepare, tmp_path)
    random = Random(inputs)
    frames = [encode_frame(seed[1:]) for seed in server_handshake.seeds()]
    logs = ("--log-level", "error", "--audit-log", str(tmp_path / "audit.log"))
    with serving("--root", str(tmp_path), *logs, "--drain-s", "0") as (process, drivers, hudi):
        status, body = request(drivers, "POST", f"/v1/jobs?table={tmp_path}/t&instant={INSTANT}")
        assert status == 200
        listeners = (
            (drivers, http_requests.seeds()),
            (hudi, http_requests.seeds()),
            (json.loads(body)["port"], frames),
        )
        memory = psutil.Process(process.pid)
        before = memory.memory_info().rss
        for number in range(inputs):
            for port, seeds in listeners:
                send(port, damaged(seeds, random), random)
            if number % 100 == 0:
                assert ask(hudi, tmp_path, number) == b"true"
        assert key_of(drivers, f"{tmp_path}/t")
        assert memory.memory_info().rss - before < GROWTH_BYTES
        process.terminate()
        _, errors = process.communicate(timeout=60)
    assert errors == "", "a fault of the service is logged"
