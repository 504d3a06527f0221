"""What the tests of this room share: a ticket, a marker source that records, storage that watches markers, reading."""

import io
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Executor, Future
from typing import TypeVar

import anyio
import pyarrow as pa
import pyarrow.parquet as pq

from tallymark.backends import Backend
from tallymark.backends.contract import NewFile
from tallymark.backends.local import LocalBackend
from tallymark.backends.memory import MemoryBackend
from tallymark.backends.options import StorageOptions
from tallymark.engine.markers.name import MarkerIo
from tallymark.engine.settings import TaskSettings
from tallymark.engine.tasks.report import TaskReport
from tallymark.engine.tasks.task_writer import TaskWriter
from tallymark.engine.tasks.ticket import WriteTicket
from tests.support.parquet import read_bytes

T = TypeVar("T", bound=Backend)

INSTANT = "20261121020304005"
RESERVATION = f".hoodie/.tallymark/open/{INSTANT}"
STAGING = f".hoodie/.temp/{INSTANT}/staged"


def schema_of(**types: pa.DataType) -> pa.Schema:
    return pa.schema(list(types.items()))


FLIGHTS = schema_of(flight=pa.int64(), origin=pa.string(), month=pa.int32())


def ticket(schema: pa.Schema = FLIGHTS, *partition_by: str, max_file_bytes: int = 1 << 27, **settings) -> WriteTicket:
    return WriteTicket(
        url="memory:",
        options=StorageOptions(),
        instant=INSTANT,
        base=0,
        schema=schema,
        partition_by=partition_by,
        staging=STAGING,
        marker_kind="direct",
        service=None,
        settings=TaskSettings(**settings),
        max_file_bytes=max_file_bytes,
    )


def flights(numbers: Iterable[int], *, months: int = 1, schema: pa.Schema = FLIGHTS) -> pa.RecordBatch:
    """Flight n flies in month n % months + 1."""
    rows = [{"flight": n, "origin": ("EWR", "JFK", "LGA")[n % 3], "month": n % months + 1} for n in numbers]
    return pa.RecordBatch.from_pylist(rows, schema=schema)


def memory(*, has_staging: bool) -> MemoryBackend:
    return opened(MemoryBackend(has_staging=has_staging))


def opened(backend: T) -> T:
    """The storage with its reservation, and its staging directory open, as a job leaves it to its tasks."""
    anyio.run(backend.put, RESERVATION, b"")
    anyio.run(backend.open_staging, STAGING)
    return backend


class Markers:
    """Acks at once, or when told, and remembers every request."""

    def __init__(self, *, acks: bool = True) -> None:
        self.acks = acks
        self.requests: list[tuple[str, ...]] = []
        self.ios: dict[str, MarkerIo] = {}
        self.acked: set[str] = set()
        self._waiting: list[tuple[tuple[str, ...], Future[None]]] = []

    def request(self, paths: Sequence[str], io: MarkerIo = "CREATE") -> Future[None]:
        ack: Future[None] = Future()
        self.requests.append(tuple(paths))
        self.ios.update((path, io) for path in paths)
        self._waiting.append((tuple(paths), ack))
        if self.acks:
            self.ack_all()
        return ack

    def ack_all(self) -> None:
        while self._waiting:
            paths, ack = self._waiting.pop(0)
            self.acked.update(paths)
            ack.set_result(None)

    def refuse_all(self, error: Exception) -> None:
        while self._waiting:
            self._waiting.pop(0)[1].set_exception(error)

    @property
    def asked(self) -> list[str]:
        return [path for request in self.requests for path in request]


class AtOnce(Executor):
    """Publishes each file in the task's thread, before the next one is opened."""

    def submit(self, put, /, *_, **__):
        outcome: Future = Future()
        try:
            outcome.set_result(put())
        except Exception as error:
            outcome.set_exception(error)
        return outcome


class WatchedBackend:
    """Storage that lets no data file be begun before its marker was acked, and counts the open ones."""

    def __init__(self, inner: Backend, markers: Markers) -> None:
        self._inner = inner
        self._markers = markers
        self.has_staging = inner.has_staging
        self.begun: list[str] = []

    def new_file(self, path: str, *, staging: str) -> NewFile:
        assert path in self._markers.acked, f"{path} was begun before its marker was acked"
        self.begun.append(path)
        return self._inner.new_file(path, staging=staging)

    def __getattr__(self, name: str):
        return getattr(self._inner, name)


def write(
    job: WriteTicket, batches: Iterable[pa.RecordBatch], backend, markers: Markers | None = None, **named
) -> TaskReport:
    """What ``write_task`` does, with a marker source of the test's own, and without pauses."""
    named.setdefault("pause", lambda _: None)
    with TaskWriter(job, backend, markers or Markers(), task=named.pop("task", 7), **named) as writer:
        for batch in batches:
            writer.write(batch)
        return writer.finish()


def stored(backend: Backend) -> dict[str, bytes]:
    """Every object but the reservation, by path."""

    async def gather() -> dict[str, bytes]:
        paths = [entry.path async for entry in backend.list("") if entry.path != RESERVATION]
        return {path: await backend.get(path) for path in paths}

    return anyio.run(gather)


def tables(backend: Backend, report: TaskReport) -> Iterator[tuple[str, pa.Table]]:
    """Each reported file's partition and rows, in the order of the report."""
    objects = stored(backend)
    for file in report.files:
        yield file.partition, read_bytes(objects[file.path])


def footer(backend: Backend, path: str) -> pq.FileMetaData:
    return pq.read_metadata(io.BytesIO(stored(backend)[path]))


def local(tmp_path) -> LocalBackend:
    return opened(LocalBackend(tmp_path / "table"))
