"""File names of a task, marked before they are needed.

Owns: which names were requested, which are taken, and how long the task waited for them. Does not own: how a marker
becomes durable (``marker_sources``).
"""

from collections.abc import Callable, Iterable
from concurrent.futures import Future, wait

from tallymark.engine.errors import ServiceUnavailable
from tallymark.engine.markers.name import MarkerIo
from tallymark.engine.tasks.marker_sources import MarkerSource


class MarkersAhead:
    """At most one name in reserve per partition: requested early, awaited late."""

    def __init__(
        self, source: MarkerSource, new_name: Callable[[], str], *, wait_s: float, monotonic: Callable[[], float]
    ) -> None:
        self._source = source
        self._new_name = new_name
        self._wait_s = wait_s
        self._monotonic = monotonic
        self._asked: dict[str, tuple[str, Future[None]]] = {}
        self.waited_s = 0.0
        """Seconds for which the task waited for acks."""

    def request(self, partitions: Iterable[str], io: MarkerIo = "CREATE") -> None:
        """Request, in one request, a name in each of these partitions that has none in reserve. Does not wait."""
        names = {partition: self._new_name() for partition in partitions if partition not in self._asked}
        if names:
            ack = self._source.request([_path(*item) for item in names.items()], io)
            self._asked.update((partition, (name, ack)) for partition, name in names.items())

    def take(self, partition: str) -> str:
        """Return a name in this partition whose marker survives a crash, so that the file may be started. Waits for the
        ack.

        Raises:
            ServiceUnavailable: no ack within the bound. Otherwise what the source raises.
        """
        self.request([partition])
        name, ack = self._asked[partition]
        self._await(ack, _path(partition, name))
        del self._asked[partition]
        return name

    @property
    def unused(self) -> tuple[str, ...]:
        """Return the requested paths that were not taken. Nothing was written there."""
        return tuple(_path(partition, name) for partition, (name, _) in self._asked.items())

    def _await(self, ack: Future[None], path: str) -> None:
        if not ack.done():
            started = self._monotonic()
            wait([ack], timeout=self._wait_s * 1.1)  # the source's own error says more: let it come first
            self.waited_s += self._monotonic() - started
        if not ack.done():
            raise ServiceUnavailable(
                f"the marker of {path} was not acked within {self._wait_s} s (marker_wait_s); nothing was written there"
            )
        ack.result()


def _path(partition: str, name: str) -> str:
    return f"{partition}/{name}" if partition else name
