"""``tallymark serve`` as a process of its own, on free ports of this machine."""

import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from importlib.util import find_spec
from pathlib import Path
from typing import IO

from tallymark.backends import StorageOptions
from tallymark.backends.errors import TallymarkError


class ServeFailed(TallymarkError):
    """It did not start; the message contains the last line of its log, or names what it lacks."""


@dataclass(frozen=True, slots=True)
class ServeProcess:
    url: str
    """That drivers of Tallymark's jobs name."""
    hudi_port: int
    pid: int
    page: str | None
    """URL of its pages; None without them."""


def is_installed() -> bool:
    return find_spec("httptools") is not None


@contextmanager
def serve_process(
    root: str, options: StorageOptions, folder: Path, *arguments: str, has_pages: bool = False
) -> Iterator[ServeProcess]:
    """Run it for the block, with further arguments. ``folder`` gets its secret and its log. Its pages are of a process
    that ends with it.

    Raises:
        ServeFailed: it did not start.
    """
    if not is_installed():
        raise ServeFailed("tallymark serve needs httptools: pip install 'tallymark[serve]'")
    folder.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-c", "from tallymark.cli import main; main()", "serve", "--root", root]
    command += ["--port", "0", "--task-port", "0", "--hudi-port", "0", "--secret", str(folder / "secret"), *arguments]
    command += ["--page-port", "0"] if has_pages else ["--no-page"]
    for name, value in _given(options).items():
        command += ["--storage", f"{name}={value}"]
    log = folder / "serve.log"
    with (
        log.open("w") as errors,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True) as process,  # noqa: S603  # our own program
    ):
        try:
            assert process.stdout is not None
            url = _after("Jobs at ", process.stdout, log)
            port = int(_after("Markers for Hudi at ", process.stdout, log).rpartition(":")[2])
            page = _after("Page at ", process.stdout, log).rstrip("/") if has_pages else None
            yield ServeProcess(url, port, process.pid, page)
        finally:
            process.kill()


def _after(words: str, output: IO[str], log: Path) -> str:
    found = re.fullmatch(rf"{words}(\S+)\n", output.readline())
    if found is None:
        lines = log.read_text(errors="replace").strip().splitlines()
        raise ServeFailed(f"tallymark serve has not started: {lines[-1] if lines else 'its log is empty'}")
    return found[1]


def _given(options: StorageOptions) -> dict[str, object]:
    plain = StorageOptions()
    values = {each.name: getattr(options, each.name) for each in fields(StorageOptions)}
    return {name: value for name, value in values.items() if value != getattr(plain, name)}
