import anyio

from tallymark.backends import Backend
from tallymark.backends.memory import MemoryBackend
from tallymark.engine.background import background_tasks
from tallymark.engine.serve.memory import DEFAULT_BYTES, Memory
from tallymark.engine.serve.rest.lake import Lake
from tallymark.engine.serve.rest.live_jobs import LiveJobs
from tallymark.engine.serve.roots import Root, Roots
from tallymark.engine.serve.settings import PageSettings
from tallymark.engine.settings import ViewSettings
from tests.engine.jobs.scene import Store, committed
from tests.support.faulty import FaultyBackend, slow
from tests.support.loops import on_virtual_time

FOLDER_S, GET_S, WAIT_S = 0.5, 0.2, 1.5
"""The search takes twice the first, one of both alone less than a page waits, and both together more."""


class GivenRoots(Roots):
    """A folder with one table."""

    def __init__(self, folder: Backend, table: Backend) -> None:
        super().__init__([Root("/lake")])
        self._backends = {"/lake": folder, "/lake/t": table}

    def open(self, place: str, *, scratch: str | None = None) -> Backend:
        return self._backends[place]


@on_virtual_time
async def test_a_page_of_all_tables_waits_for_the_search_and_for_the_tables_together():
    store, folder = Store(has_staging=True), MemoryBackend()
    await committed(store.backend)
    await folder.put("t/.hoodie/hoodie.properties", b"")
    roots = GivenRoots(
        FaultyBackend(folder, slow("folders", FOLDER_S)), FaultyBackend(store.backend, slow("get", GET_S))
    )
    async with background_tasks() as tasks:
        memory, settings = Memory(DEFAULT_BYTES), PageSettings(wait_s=WAIT_S)
        lake = Lake(roots, settings, tasks, views=ViewSettings(), memory=memory, live=LiveJobs())
        started_s = anyio.current_time()
        [first] = await lake.summaries(lambda _: True)
        assert (first["name"], anyio.current_time() - started_s) == (None, WAIT_S)
        [later] = await lake.summaries(lambda _: True)
        assert (later["files"], later["error"]) == (2, None)
        lake.close()
