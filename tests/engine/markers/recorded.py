"""Storage and servers that write down what they do."""

from collections.abc import Mapping

import anyio
import trio

from tallymark.backends.contract import Backend
from tallymark.backends.errors import AlreadyExists
from tallymark.backends.memory import MemoryBackend
from tallymark.engine.errors import TallymarkError
from tallymark.engine.markers import MarkerDirectory, MarkerName
from tallymark.engine.markers.segment import FIRST_INCARNATION, claim_name, segment_name
from tests.history import Acked, Asked, GaveUp, History, Landed, Refused, Sent
from tests.support.faulty import Fault, FaultyBackend

INSTANT = "20260102030405678"
FOLDER = f".hoodie/.temp/{INSTANT}"
SEGMENTS = "*/MARKERS[0-9]*"
HEAD = len("//0123abcd 1\n")
"""Bytes of a segment beside its markers."""
DIRECT_MARKERS = "*.marker.*"


def segment(sequence: int, *, server: int = 0) -> str:
    """The path of a segment of the first server of the instant, or of a later one."""
    return f"{FOLDER}/{segment_name(FIRST_INCARNATION + server, sequence)}"


def claim(*, server: int = 0) -> str:
    """The path of what that server claims its numbers with."""
    return f"{FOLDER}/{claim_name(FIRST_INCARNATION + server)}"


class RecordedStore(MemoryBackend):
    """Records every object at the moment from which it survives a crash."""

    def __init__(self, history: History) -> None:
        super().__init__()
        self._history = history

    async def put(self, path: str, data: bytes) -> None:
        await super().put(path, data)
        self._history.record(Landed(at=trio.current_time(), path=path, data=data))

    def _create(self, path: str, data: bytes) -> None:
        super()._create(path, data)
        self._history.record(Landed(at=trio.current_time(), path=path, data=data))


class RecordedServer(FaultyBackend):
    """One server's way to storage: records what it sends, and can lose a put that lands when it is given up."""

    def __init__(
        self,
        inner: Backend,
        *script: Fault,
        history: History,
        strays: Mapping[int, float],
        crowd: trio.Nursery,
        name: str,
    ) -> None:
        """``strays``: of the segments sent, counted from 1, those that never answer and land so much later."""
        super().__init__(inner, *script)
        self.name = name
        self._history = history
        self._strays = strays
        self._crowd = crowd
        self._segments_sent = 0

    def heal(self) -> None:
        super().heal()
        self._strays = {}

    async def put_new(self, path: str, data: bytes) -> None:
        self._history.record(Sent(at=trio.current_time(), server=self.name, path=path, data=data))
        if "/MARKERS" in path or ".marker." in path:
            self._segments_sent += 1
            if self._segments_sent in self._strays:
                self._crowd.start_soon(self._land_late, path, data, self._strays[self._segments_sent])
                await anyio.sleep_forever()
        await super().put_new(path, data)

    async def _land_late(self, path: str, data: bytes, delay_s: float) -> None:
        await anyio.sleep(delay_s)
        try:
            await self.inner.put_new(path, data)
        except AlreadyExists:
            return


async def ask(
    directory: MarkerDirectory,
    history: History,
    *paths: str,
    request: int,
    server: str = "server",
    patience_s: float = float("inf"),
) -> None:
    """Ask once, and record how it ends."""
    names = tuple(str(MarkerName.of(path)) for path in paths)
    history.record(Asked(at=trio.current_time(), request=request, server=server, instant=INSTANT, names=names))
    try:
        with trio.fail_after(patience_s):
            answers = await directory.create(*paths)
    except trio.TooSlowError:
        history.record(GaveUp(at=trio.current_time(), request=request))
    except TallymarkError as error:
        event = Refused(at=trio.current_time(), request=request, error=type(error).__name__, message=str(error))
        history.record(event)
    else:
        words = tuple(answer.value for answer in answers)
        history.record(Acked(at=trio.current_time(), request=request, answers=words))


async def stored(backend: Backend, directory: str = "") -> dict[str, bytes]:
    """All that lies in storage, by path."""
    return {entry.path: await backend.get(entry.path) async for entry in backend.list(directory)}
