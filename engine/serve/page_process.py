"""The process of pages and REST beside that of markers: how one starts the other, and what it reports to it.

They are two processes so that no one who looks delays an ack. The child gets lines of JSON on its standard input, and
ends when that ends: it does not outlive the process that has started it, however that has ended.
"""

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from urllib.parse import urlsplit

import anyio
from anyio.abc import ByteReceiveStream, Process, TaskStatus
from anyio.streams.buffered import BufferedByteReceiveStream
from trio.lowlevel import FdStream

from tallymark.backends.events import EventLog
from tallymark.engine.background import background_tasks
from tallymark.engine.documents.jobs import LiveFields
from tallymark.engine.errors import InvalidRequest
from tallymark.engine.serve.config import ServeConfig
from tallymark.engine.serve.memory import Memory
from tallymark.engine.serve.rest.live_jobs import LiveJobs
from tallymark.engine.serve.secret_file import default_path, read_or_create

RESTART_S = (1.0, 30.0)
"""Pause before a child that has died is started again: the first one, and the longest; it doubles in between."""

HEALTHY_S = 60.0
"""Time after which the death of a child does not count as one of a series."""

EXIT_S = 3.0
"""Time that requests have to end in when the process that has started this one has ended."""

NICE = 10
"""Lower priority of the child: where both need the processor, an ack does not wait for a page."""

LINE_BYTES = 16 << 20
"""Largest line: figures of 50,000 jobs."""

_events = EventLog(__name__)


class PageProcess:
    """The child, started again when it dies. Belongs to one event loop."""

    def __init__(self, arguments: Sequence[str]) -> None:
        """``arguments`` are those of this process's own command line."""
        # -P: nothing of the working directory is imported
        self._command = [sys.executable, "-P", "-m", "tallymark.cli", *arguments, "--page-only"]
        self._message: dict[str, object] = {}
        self._changed = anyio.Event()

    async def run(self, *, task_status: TaskStatus[str] = anyio.TASK_STATUS_IGNORED) -> None:
        """Run until cancelled; report the address of the first child as started.

        Raises InvalidRequest if that one does not start: it has printed why.
        """
        pause_s, is_first = RESTART_S[0], True
        while True:
            started_at = anyio.current_time()
            pipe = subprocess.PIPE
            async with await anyio.open_process(self._command, stderr=None, stdin=pipe, stdout=pipe) as process:
                try:
                    address = await _first_line(process)
                    if is_first:
                        if address is None:
                            raise InvalidRequest("the page cannot be served; --no-page leaves it out")
                        self._command += ["--page-port", str(urlsplit(address).port)]  # the next child has it, too
                        task_status.started(address)
                        is_first = False
                    await self._report_until_it_ends(process)
                finally:
                    with suppress(ProcessLookupError):
                        process.kill()
            if anyio.current_time() - started_at > HEALTHY_S:
                pause_s = RESTART_S[0]
            _events.warning("page.ended", status=process.returncode, pause_s=pause_s)
            await anyio.sleep(pause_s)
            pause_s = min(2 * pause_s, RESTART_S[1])

    async def report(self, jobs: dict[str, LiveFields]) -> None:
        """Let the child have the figures of live jobs; of several reports that it has not read yet, the last one."""
        self._send(jobs=jobs)

    async def end(self) -> None:
        """Let the child know that this process is about to end."""
        self._send(ending=True)

    def _send(self, **values: object) -> None:
        self._message |= values
        self._changed.set()

    async def _report_until_it_ends(self, process: Process) -> None:
        assert process.stdin is not None
        stream = process.stdin

        async def report() -> None:
            with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
                while True:
                    await self._changed.wait()
                    self._changed = anyio.Event()
                    await stream.send(json.dumps(self._message).encode() + b"\n")

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(report)
            await process.wait()
            tasks.cancel_scope.cancel()


async def _first_line(process: Process) -> str | None:
    assert process.stdout is not None
    try:
        line = await BufferedByteReceiveStream(process.stdout).receive_until(b"\n", 4096)
    except (anyio.IncompleteRead, anyio.DelimiterNotFound):
        await process.wait()
        return None
    return line.decode()


async def run_page(config: ServeConfig, started: Callable[[str], None]) -> None:
    """Be the child: serve until standard input ends. ``started`` receives the address.

    Raises InvalidRequest for what cannot be served.
    """
    from tallymark.engine.serve.rest.service import serve_page

    os.nice(NICE)
    for number in (signal.SIGINT, signal.SIGTERM):  # the other process has them, too, and decides
        signal.signal(number, signal.SIG_IGN)
    live, ending = LiveJobs(), anyio.Event()
    serve = partial(
        serve_page,
        config.roots,
        read_or_create(config.secret or default_path()),
        config.page,
        jobs=config.jobs,
        views=config.page_views,
        memory=Memory(config.page.memory_mb << 20),
        live=live,
        ending=ending,
    )
    async with background_tasks() as tasks:
        host, port = await tasks.start(serve)
        started(f"{config.jobs.url(host, port)}{config.page.base_path}")
        lines = BufferedByteReceiveStream(_StandardInput())
        with suppress(anyio.IncompleteRead):
            while True:
                message = json.loads(await lines.receive_until(b"\n", LINE_BYTES))
                live.update(message.get("jobs", {}))
                if message.get("ending"):
                    ending.set()
        # A client that does not read could keep the server from ending, and its port from the next one.
        exit_later = threading.Timer(EXIT_S, os._exit, (0,))
        exit_later.daemon = True
        exit_later.start()


class _StandardInput(ByteReceiveStream):
    def __init__(self) -> None:
        self._stream = FdStream(os.dup(sys.stdin.fileno()))

    async def receive(self, max_bytes: int = 65536) -> bytes:
        data = await self._stream.receive_some(max_bytes)
        if not data:
            raise anyio.EndOfStream
        return bytes(data)

    async def aclose(self) -> None:
        await self._stream.aclose()
