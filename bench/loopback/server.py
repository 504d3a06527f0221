"""The process of the server, for the duration of its use."""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.request import urlopen

from tallymark.bench.loopback.connection import DATA_KEPT_BYTES_MAX
from tallymark.bench.loopback.objects import BUCKET, KEPT_BYTES_MAX

TIMEOUT_S = 30.0
"""A time limit beyond any latency that may be requested."""


@contextmanager
def server(
    latency_s: float = 0.0,
    *,
    kept_bytes_max: int = KEPT_BYTES_MAX,
    data_kept_bytes_max: int = DATA_KEPT_BYTES_MAX,
    held: Path | None = None,
    puts_per_s: float = 0.0,
) -> Iterator[str]:
    """The URL of a server that ends with the block, or with this process, and takes so long for each answer.

    ``puts_per_s``: objects that may be put or deleted in a second, in all; the others wait. 0: as many as come.
    ``held`` is a file of keys, one a line: empty objects that it has from the beginning.
    """
    numbers = (latency_s, kept_bytes_max, data_kept_bytes_max, puts_per_s)
    command = [sys.executable, "-m", "tallymark.bench.loopback", *map(str, numbers)]
    command += [] if held is None else [str(held)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as running:  # noqa: S603 our own program
        assert running.stdin is not None
        assert running.stdout is not None
        try:
            yield f"http://127.0.0.1:{int(running.stdout.readline())}"
        finally:
            running.stdin.close()


def seen(endpoint: str) -> dict[str, int]:
    """Return the requests by kind since the last call."""
    with urlopen(f"{endpoint}/{BUCKET}?seen", timeout=TIMEOUT_S) as answer:  # noqa: S310 our own server
        found: dict[str, int] = json.load(answer)
        return found


def credentials() -> dict[str, object]:
    """What a client signs with, as ``StorageOptions.credentials`` names it; it is not checked."""
    return {"access_key_id": "bench", "secret_access_key": "bench", "token": None, "expires_at": None}
