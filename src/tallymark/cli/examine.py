"""Run of the doctor for a person, with progress and interruption."""

import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

import anyio
import click

from tallymark.backends.doctor import Diagnosis, Examination, practice
from tallymark.backends.doctor.large import LARGE_FILE_BYTES
from tallymark.backends.options import StorageOptions
from tallymark.engine.errors import Stopped


def examined(url: str, options: StorageOptions, *, is_large: bool, probing_s: float) -> Diagnosis:
    """Return the doctor's findings at the URL within that many seconds; a large file is tried after them.

    Raises:
        InvalidPath: the URL or the options are not valid for a store.
        Stopped: by a signal; the message lists what is left.
    """
    if is_large:
        _warn(url)
    with _progress() as report:
        return anyio.run(_examine, url, options, is_large, probing_s, report, backend="trio")


async def _examine(
    url: str, options: StorageOptions, is_large: bool, probing_s: float, report: Callable[[str], None]
) -> Diagnosis:
    found: Diagnosis | None = None
    async with practice(url, options) as place:
        examination = Examination(
            place.backend,
            now=lambda: datetime.now(UTC).timestamp(),
            ground=place.ground,
            is_large=is_large,
            probing_s=probing_s,
            report=report,
        )
        async with anyio.create_task_group() as tasks:
            with anyio.CancelScope() as scope:
                tasks.start_soon(_cancel_on_signal, scope)
                found = await examination.run()
            tasks.cancel_scope.cancel()
    if found is None:
        left = f"could not be removed: {', '.join(examination.left)}" if examination.left else "nothing is left"
        raise Stopped(f"the examination of {url} was interrupted; {left}")
    return found


async def _cancel_on_signal(scope: anyio.CancelScope) -> None:
    """Ignore a second signal: the removal is bounded."""
    if threading.current_thread() is not threading.main_thread():  # elsewhere signals cannot be received
        return
    with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        async for _ in signals:
            scope.cancel()


def _warn(url: str) -> None:
    click.echo(
        f"--large writes one file of {LARGE_FILE_BYTES / 1e9:g} GB below {url} and removes it. On object stores it "
        "grows in the temporary directory first, which needs as much room.",
        err=True,
    )


@contextmanager
def _progress() -> Iterator[Callable[[str], None]]:
    """Show the probe that runs, on a terminal; results go to stdout, this to stderr."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console

    console = Console(stderr=True, markup=False, highlight=False, emoji=False)
    with console.status("opening the store") as status:
        yield status.update
