"""``tallymark serve`` as a process, as browsers and programs meet it."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def serving_pages(root: Path, folder: Path, *arguments: str) -> Iterator[str]:
    """Yield the URL of the pages; the secret of the service is in the folder."""
    ports = [part for name in ("--port", "--task-port", "--hudi-port", "--page-port") for part in (name, "0")]
    command = [sys.executable, "-m", "tallymark.cli", "serve", "--root", str(root), *ports]
    command += ["--secret", str(folder / "serve.secret"), *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            lines = [process.stdout.readline() for _ in range(4)]
            (page,) = [line for line in lines if line.startswith("Page at ")]
            yield page.removeprefix("Page at ").strip()
        finally:
            process.terminate()
