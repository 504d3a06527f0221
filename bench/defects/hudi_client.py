"""Hudi's own client for markers, that of its writers, in the JVM of a timeline server that stands beside.

Its constructor that takes no table is not public, and is called by reflection.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from py4j.java_gateway import JavaObject, JVMView

_CLASS = "org.apache.hudi.table.marker.TimelineServerBasedWriteMarkers"

RETRIES = 3
"""Of a request that was not answered; its default once retries are on, which they are not by default."""


@dataclass(frozen=True, slots=True)
class HudiClientAnswer:
    path: str | None
    """Of the marker, for whoever asked; None where the client says that there is none of its own."""
    error: str | None
    """The exception that it threw."""


class HudiJavaClient:
    def __init__(self, jvm: "JVMView", table: Path, folder: Path, instant: str, *, port: int) -> None:
        self._jvm = jvm
        self._table = table
        self._markers = self._made(str(table), str(folder), instant, _remote(jvm, port))

    def create(self, partition: str, name: str) -> HudiClientAnswer:
        """As a writer without early conflict detection."""
        io = self._jvm.org.apache.hudi.common.model.IOType.CREATE
        return self._answer(lambda: self._markers.create(partition, name, io))

    def create_early(self, partition: str, name: str) -> HudiClientAnswer:
        """As a writer with early conflict detection."""
        hudi = self._jvm.org.apache.hudi
        config = hudi.config.HoodieWriteConfig.newBuilder().withPath(str(self._table)).build()
        io = hudi.common.model.IOType.CREATE
        return self._answer(
            lambda: self._markers.createWithEarlyConflictDetection(partition, name, io, False, config, "", None)
        )

    def _answer(self, ask: Any) -> HudiClientAnswer:
        from py4j.protocol import Py4JJavaError

        try:
            found = ask()
        except Py4JJavaError as error:
            return HudiClientAnswer(None, error.java_exception.getClass().getSimpleName())
        return HudiClientAnswer(found.get().toString() if found.isPresent() else None, None)

    def _made(self, *values: Any) -> "JavaObject":
        jvm = self._jvm
        [constructor] = [
            each
            for each in jvm.java.lang.Class.forName(_CLASS).getDeclaredConstructors()
            if each.getParameterCount() == len(values)
        ]
        constructor.setAccessible(True)
        given = jvm.java.util.ArrayList()
        for value in values:
            given.add(value)
        made: JavaObject = constructor.newInstance(given.toArray())
        return made


def _remote(jvm: "JVMView", port: int) -> "JavaObject":
    builder = jvm.org.apache.hudi.common.table.view.FileSystemViewStorageConfig.newBuilder()
    config: JavaObject = (
        builder.withRemoteServerHost("127.0.0.1")
        .withRemoteServerPort(port)
        .withRemoteTimelineClientRetry(True)
        .withRemoteTimelineClientMaxRetryNumbers(RETRIES)
        .build()
    )
    return config
