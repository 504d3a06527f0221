"""The process of the server, for the duration of its use."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tallymark.bench.loopback.objects import KEPT_BYTES_MAX


@contextmanager
def server(
    latency_s: float = 0.0, *, kept_bytes_max: int = KEPT_BYTES_MAX, held: Path | None = None, puts_per_s: float = 0.0
) -> Iterator[str]:
    """The URL of a server that ends with the block, or with this process, and takes so long for each answer.

    ``puts_per_s``: objects that may be put or deleted in a second, in all; the others wait. 0: as many as come.
    ``held`` is a file of keys, one a line: empty objects that it has from the beginning.
    """
    command = [sys.executable, "-m", "tallymark.bench.loopback", str(latency_s), str(kept_bytes_max), str(puts_per_s)]
    command += [] if held is None else [str(held)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as running:  # noqa: S603 our own program
        assert running.stdin is not None
        assert running.stdout is not None
        try:
            yield f"http://127.0.0.1:{int(running.stdout.readline())}"
        finally:
            running.stdin.close()


def credentials() -> dict[str, object]:
    """What a client signs with, as ``StorageOptions.credentials`` names it; it is not checked."""
    return {"access_key_id": "bench", "secret_access_key": "bench", "token": None, "expires_at": None}
