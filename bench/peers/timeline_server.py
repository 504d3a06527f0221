"""Hudi's timeline server, standalone: a process that answers lookups and, if configured, takes markers.

It comes with Hudi's bundle for Spark. Of Spark it needs nothing but the Hadoop, Jackson and Py4J that PySpark ships.
Started by its own ``main`` the process ends five seconds later, since all its threads are daemons (seen with Hudi
1.2.0): here Py4J's gateway calls that, and lives on.
"""

import http.client
import shutil
import socket
import subprocess
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import IO, TYPE_CHECKING, Literal

from tallymark.backends.errors import TallymarkError
from tallymark.bench.jars import fetch, jar_cache, java, pyspark_jars

if TYPE_CHECKING:
    from py4j.java_gateway import JavaGateway, JVMView

HUDI = "1.2.0"

HUDI_JARS = (f"org.apache.hudi:hudi-spark3.5-bundle_2.12:{HUDI}",)
"""The newest bundle on Maven Central, for Spark 3.5."""

START_TIMEOUT_S = 60.0
"""For a JVM on a busy machine."""

END_TIMEOUT_S = 10.0

_POLL_S = 0.05

ViewStorage = Literal["MEMORY", "SPILLABLE_DISK", "EMBEDDED_KV_STORE"]
"""Where it keeps its view: ``SPILLABLE_DISK`` is its own default, ``EMBEDDED_KV_STORE`` is RocksDB."""

_OPENED = (
    *("lang", "lang.invoke", "lang.reflect", "io", "net", "nio"),
    *("util", "util.concurrent", "util.concurrent.atomic"),
)
"""Packages below ``java`` that Spark opens in a JVM, in which Hudi usually runs. Without them its serializer of what it
spills fails, and its JSON is written by reflection."""

LAST_LINES = 5
"""Of its log that are shown when it does not start."""


class ServerFailed(TallymarkError):
    """It did not start; the message holds the beginning of its log, or says what it lacks."""


@dataclass(frozen=True, slots=True)
class TimelineServer:
    port: int
    pid: int
    gateway: "JavaGateway"

    @property
    def jvm(self) -> "JVMView":
        return self.gateway.jvm

    def heap_bytes(self) -> int:
        """Of objects that are still in use."""
        runtime = self.jvm.java.lang.Runtime.getRuntime()
        runtime.gc()
        used: int = runtime.totalMemory() - runtime.freeMemory()
        return used


@contextmanager
def timeline_server(
    scratch: Path, *, view: ViewStorage = "SPILLABLE_DISK", heap_mb: int = 1024, arguments: Sequence[str] = ()
) -> Iterator[TimelineServer]:
    """One for the block. ``scratch`` is a folder for its log and what it spills; ``arguments`` go to it as they are.

    Raises:
        ServerFailed: it did not start.
        OSError, SubprocessError: it can be neither found nor fetched.
    """
    if find_spec("pyspark") is None or java() is None:
        raise ServerFailed("Hudi's timeline server needs PySpark and a Java: pip install 'tallymark[pyspark]'")
    scratch.mkdir(parents=True, exist_ok=True)
    port, log = _free_port(), scratch / "timeline-server.log"
    options = ["--server-port", str(port), "--view-storage", view, "--base-store-path", f"{scratch}/"]
    options += ["--rocksdb-path", str(scratch / "rocksdb"), *arguments]
    with log.open("a") as said, _process(heap_mb, said) as process, _gateway(process, log) as gateway:
        _start(gateway, options)
        _await_answer(process, port, log)
        yield TimelineServer(port, process.pid, gateway)


@contextmanager
def _process(heap_mb: int, log: IO[str]) -> Iterator[subprocess.Popen[str]]:
    """A JVM controlled through Py4J. It ends with the block, or with this process."""
    [bundle] = fetch(HUDI_JARS, jar_cache())
    opened = (f"--add-opens=java.base/java.{name}=ALL-UNNAMED" for name in _OPENED)
    running = subprocess.Popen(  # noqa: S603 the user's own Java
        [
            *(java() or "java", *opened, f"-Xmx{heap_mb}m", "-cp", f"{bundle}:{pyspark_jars()}/*"),
            *("py4j.GatewayServer", "--die-on-broken-pipe", "--enable-auth", "0"),
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=log,
        text=True,
    )
    try:
        yield running
    finally:
        running.terminate()
        try:
            running.wait(END_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            running.kill()
            running.wait()


@contextmanager
def _gateway(process: subprocess.Popen[str], log: Path) -> Iterator["JavaGateway"]:
    from py4j.java_gateway import GatewayParameters, JavaGateway

    assert process.stdin is not None
    assert process.stdout is not None
    port, token = process.stdout.readline().strip(), process.stdout.readline().strip()
    if not token:
        raise _failed(log)
    draining = threading.Thread(target=_drain, args=(process.stdout, log), daemon=True)
    draining.start()
    gateway = JavaGateway(gateway_parameters=GatewayParameters(port=int(port), auth_token=token))
    try:
        yield gateway
    finally:
        gateway.close()
        process.stdin.close()  # with which it ends
        draining.join(END_TIMEOUT_S)


def _drain(output: IO[str], log: Path) -> None:
    """Its errors are written to standard output, too: an unread pipe would block it after 64 kB."""
    with output, log.open("a") as said:
        shutil.copyfileobj(output, said)


def _start(gateway: "JavaGateway", options: Sequence[str]) -> None:
    from py4j.protocol import Py4JError

    words = gateway.new_array(gateway.jvm.java.lang.String, len(options))
    for number, word in enumerate(options):
        words[number] = word
    try:
        gateway.jvm.org.apache.hudi.timeline.service.TimelineService.main(words)
    except Py4JError as error:
        raise ServerFailed(f"Hudi's timeline server did not start: {error}") from error


def _await_answer(process: subprocess.Popen[str], port: int, log: Path) -> None:
    for _ in range(int(START_TIMEOUT_S / _POLL_S)):
        with suppress(subprocess.TimeoutExpired):
            process.wait(_POLL_S)
            break
        if _answers(port):
            return
    raise _failed(log)


def _failed(log: Path) -> ServerFailed:
    lines = [line for line in log.read_text(errors="replace").splitlines() if line.strip()]
    return ServerFailed(f"Hudi's timeline server did not start: {' | '.join(lines[:LAST_LINES])}")


def _answers(port: int) -> bool:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=1)
    try:
        connection.request("GET", "/")
        return connection.getresponse().status == http.HTTPStatus.OK
    except OSError:
        return False
    finally:
        connection.close()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
