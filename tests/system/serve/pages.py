"""``tallymark serve`` as a process, as browsers and programs meet it."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Served:
    process: "subprocess.Popen[str]"
    jobs: str
    """URL for drivers."""
    page: str
    """URL of the pages."""


@contextmanager
def serving_process(root: Path, folder: Path, *arguments: str, script: str = "") -> Iterator[Served]:
    """Yield the service on free ports; its secret is in the folder."""
    ports = [part for name in ("--port", "--task-port", "--hudi-port", "--page-port") for part in (name, "0")]
    command = [
        sys.executable,
        "-c",
        f"{script}from tallymark.cli import main; main()",
        "serve",
        "--root",
        str(root),
        *ports,
    ]
    command += ["--secret", str(folder / "serve.secret"), *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            lines = dict(process.stdout.readline().strip().rsplit(" ", 1) for _ in range(4))
            yield Served(process, lines["Jobs at"], lines["Page at"])
        finally:
            process.terminate()


@contextmanager
def serving_pages(root: Path, folder: Path, *arguments: str) -> Iterator[str]:
    """Yield the URL of the pages."""
    with serving_process(root, folder, *arguments) as served:
        yield served.page
