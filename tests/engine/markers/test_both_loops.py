"""The engine on trio and on asyncio, in memory and on a real disk."""

from fnmatch import fnmatchcase

import anyio
import anyio.lowlevel
import pytest

from tallymark.backends.contract import Backend
from tallymark.backends.local import LocalBackend
from tallymark.backends.memory import MemoryBackend
from tallymark.engine.errors import Closed, Sealed, TallymarkError
from tallymark.engine.markers import MarkerAnswer, open_marker_engine
from tallymark.engine.settings import MarkerSettings
from tests.engine.markers.recorded import FOLDER, INSTANT, SEGMENTS, stored
from tests.invariants import markers_in
from tests.support.faulty import FaultyBackend, hanging
from tests.support.loops import on_both_loops


@pytest.fixture(params=["memory", "local"])
def storage(request, tmp_path):
    return MemoryBackend() if request.param == "memory" else LocalBackend(tmp_path)


@pytest.mark.parametrize("kind", ["batched", "direct"])
@on_both_loops
async def test_concurrent_requests_are_acked_durably_share_flushes_and_are_found_by_a_second_server(storage, kind):
    acked = []

    async def request(directory, number: int) -> None:
        paths = [f"p={number % 3}/{number}-{file}.parquet" for file in range(3)]
        assert await directory.create(*paths) == (MarkerAnswer.CREATED,) * 3
        names = {(INSTANT, f"{path}.marker.CREATE") for path in paths}
        assert names <= markers_in(await stored(storage, FOLDER))
        acked.extend(names)

    marker_settings = MarkerSettings(kind=kind, hedge_quantile=None)  # on a busy machine some puts are late
    async with open_marker_engine(storage, marker_settings) as engine, anyio.create_task_group() as tasks:
        for number in range(20):
            tasks.start_soon(request, engine.directory(INSTANT), number)
    assert engine.statistics().durable == len(acked) == 60
    assert engine.statistics().puts == 60 if kind == "direct" else engine.statistics().puts < 20
    assert set(acked) == markers_in(await stored(storage, FOLDER))
    async with open_marker_engine(storage, marker_settings) as second:
        answers = await second.directory(INSTANT).create("p=0/0-0.parquet", "new.parquet")
        assert answers == (MarkerAnswer.EXISTED, MarkerAnswer.CREATED)
        assert await second.directory(INSTANT).delete() is True
    assert await stored(storage, FOLDER) == {}


class Gated(FaultyBackend):
    """Segments wait at a gate before they are put."""

    def __init__(self, inner: Backend) -> None:
        super().__init__(inner)
        self.gate = anyio.Event()

    async def put_new(self, path: str, data: bytes) -> None:
        if "/MARKERS" in path:
            await self.gate.wait()
        await super().put_new(path, data)


@on_both_loops
async def test_a_cancelled_requester_leaves_its_batch_to_the_others(storage):
    gated = Gated(storage)
    async with open_marker_engine(gated) as engine:
        directory = engine.directory(INSTANT)
        async with anyio.create_task_group() as impatient:
            impatient.start_soon(directory.create, "x.parquet")
            while engine.statistics().inflight == 0:
                await anyio.lowlevel.checkpoint()
            impatient.cancel_scope.cancel()
        gated.gate.set()
        assert await directory.create("x.parquet") == (MarkerAnswer.EXISTED,)
        assert len([path for path in gated.paths("put_new") if "/MARKERS" in path]) == 1


@pytest.mark.parametrize(("verb", "where"), [("list", "*"), ("put", "*"), ("put_new", "*"), ("put_new", SEGMENTS)])
@on_both_loops
async def test_closing_and_sealing_answer_everybody_whatever_storage_does(storage, verb, where):
    faulty = FaultyBackend(storage, hanging(verb, where))
    refusals = []

    async def request(directory, path: str) -> None:
        try:
            await directory.create(path)
        except TallymarkError as error:
            refusals.append(type(error))

    async with anyio.create_task_group() as tasks, open_marker_engine(faulty) as engine:
        sealed, closed = engine.directory("sealed"), engine.directory("closed")
        for directory in (sealed, closed):
            for name in ("x.parquet", "y.parquet"):
                tasks.start_soon(request, directory, name)
        while sum(fnmatchcase(path, where) for path in faulty.paths(verb)) < 2:
            await anyio.lowlevel.checkpoint()
        sealed.seal()
        while len(refusals) < 2:
            await anyio.lowlevel.checkpoint()
        assert refusals == [Sealed, Sealed]
    assert refusals[2:] == [Closed, Closed]
