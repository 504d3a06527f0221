"""Hudi's marker client on any number of servers: what was acked is durable, and every answer is what storage has."""

from contextlib import AsyncExitStack, suppress
from random import Random

import anyio
import pytest

from tallymark.backends import Backend
from tallymark.backends.memory import MemoryBackend
from tallymark.engine.errors import InvalidRequest, Overloaded, Sealed, TallymarkError
from tallymark.engine.serve.hudi_markers import HudiMarkers, open_hudi_markers
from tallymark.engine.serve.memory import INSTANT_BYTES, Memory
from tallymark.engine.settings import MarkerSettings
from tests.engine.serve.hudi_table import INSTANT, put_state, put_table
from tests.support.examples import examples
from tests.support.faulty import FaultyBackend, lost_answer, slow
from tests.support.loops import on_both_loops, on_virtual_time

FOLDER = f".hoodie/.temp/{INSTANT}"
SETTINGS = MarkerSettings(interval_s=0.01)


def marker(number: int, io: str = "CREATE") -> str:
    return f"land=A/{number:04d}-0_{number}-7-42_{INSTANT}.parquet.marker.{io}"


async def stored(storage: Backend) -> list[str]:
    """Paths in the marker directory, and of Tallymark's own folder, of which a table of Hudi has none."""
    folders = (FOLDER, ".hoodie/.tallymark")
    return [entry.path for folder in folders async for entry in storage.list(folder)]


async def table(version: int = 9, state: str = "inflight") -> MemoryBackend:
    storage = MemoryBackend()
    await put_table(storage, version)
    await put_state(storage, version, state)  # type: ignore[arg-type]
    return storage


@pytest.mark.parametrize("version", [6, 9])
@on_both_loops
async def test_a_writer_finds_what_it_has_asked_for_and_nothing_once_it_is_deleted(version):
    storage = await table(version)
    names = [marker(1), marker(2, "MERGE"), marker(3, "APPEND"), f"0-0_0-1-1_{INSTANT}.parquet.marker.CREATE"]
    async with open_hudi_markers(storage, SETTINGS) as markers:
        assert not await markers.exists(INSTANT)
        for name in (*names, names[0]):
            await markers.create(INSTANT, name)
        assert await markers.names(INSTANT) == sorted(names)
        assert await markers.names(INSTANT, ios=("CREATE", "MERGE")) == sorted({*names} - {names[2]})
        assert await markers.names(INSTANT, ios=["APPEND"]) == [names[2]]
        assert await markers.exists(INSTANT)
        await put_state(storage, version, "completed")
        assert await markers.delete(INSTANT)
        assert not await markers.exists(INSTANT)
        assert not await markers.delete(INSTANT)
    assert await stored(storage) == []


@on_both_loops
async def test_hudis_rollback_reads_the_segments_line_by_line():
    """One line a marker, each ended, and nothing else: it takes any other line for a marker and fails."""
    storage = await table()
    settings = MarkerSettings(interval_s=0.001, segment_count_max=2, merge_freed_min=1)
    async with open_hudi_markers(storage, settings) as markers:
        for number in range(30):
            await markers.create(INSTANT, marker(number))
        segments = [path for path in await stored(storage) if "/MARKERS" in path and not path.endswith(".type")]
        text = b"".join([await storage.get(path) for path in segments]).decode()
    assert len(segments) < 30, "some are merged"
    assert {*text.splitlines()} == {*map(marker, range(30))}
    assert text.endswith("\n")
    assert await storage.get(f"{FOLDER}/MARKERS.type") == b"TIMELINE_SERVER_BASED"


@pytest.mark.parametrize("version", [6, 9])
@pytest.mark.parametrize("state", ["absent", "requested", "completed"])
@on_both_loops
async def test_a_marker_of_an_instant_that_is_not_inflight_is_refused_and_nothing_put(version, state):
    storage = await table(version, state)
    async with open_hudi_markers(storage, SETTINGS) as markers:
        with pytest.raises(Sealed, match="not inflight"):
            await markers.create(INSTANT, marker(1))
        assert await stored(storage) == []
        await put_state(storage, version, "inflight")
        await markers.create(INSTANT, marker(1))
        assert await markers.names(INSTANT) == [marker(1)]


@pytest.mark.parametrize(
    ("name", "rule"),
    [
        ("land=A/x.parquet", "a name of one ends with .marker.CREATE, MERGE or APPEND"),
        ("land=A/x.parquet.marker.READ", "'READ' is none of"),
        ("../x.parquet.marker.CREATE", r"'\.\.' segment"),
        ("/x.parquet.marker.CREATE", "is absolute"),
        ("a\nb.parquet.marker.CREATE", "control character"),
    ],
)
@on_both_loops
async def test_what_is_no_marker_is_refused(name, rule):
    storage = await table()
    async with open_hudi_markers(storage, SETTINGS) as markers:
        with pytest.raises(InvalidRequest, match=rule):
            await markers.create(INSTANT, name)
        assert await markers.names(INSTANT) == []
        for outside in ("..", "a/b", ""):
            with pytest.raises(InvalidRequest, match="may hold letters"):
                await markers.delete(outside)


@on_both_loops
async def test_either_of_two_servers_answers_with_the_markers_of_both():
    storage = await table()
    async with open_hudi_markers(storage, SETTINGS) as one, open_hudi_markers(storage, SETTINGS) as other:
        async with anyio.create_task_group() as tasks:
            for number in range(40):
                tasks.start_soon((one, other)[number % 2].create, INSTANT, marker(number))
        everything = [marker(number) for number in range(40)]
        assert await one.names(INSTANT) == await other.names(INSTANT) == everything
    async with open_hudi_markers(storage, SETTINGS) as later:
        assert await later.names(INSTANT) == everything


@pytest.mark.parametrize("deletes", ["itself", "another"])
@on_both_loops
async def test_a_clustering_that_runs_again_under_its_instant_gets_markers_that_are_durable(deletes):
    """A server that had them before has to put them again, whoever has deleted them."""
    storage = await table()
    async with open_hudi_markers(storage, SETTINGS) as one, open_hudi_markers(storage, SETTINGS) as other:
        for number in range(3):
            await one.create(INSTANT, marker(number))
        await put_state(storage, 9, "requested", pending="clustering", completed="replacecommit")
        assert await (one if deletes == "itself" else other).delete(INSTANT)
        await put_state(storage, 9, "inflight", pending="clustering", completed="replacecommit")
        async with anyio.create_task_group() as tasks:
            for number in (0, 1, 5):
                tasks.start_soon(one.create, INSTANT, marker(number))
        assert await other.names(INSTANT) == [marker(0), marker(1), marker(5)]


@pytest.mark.parametrize("state", ["absent", "completed"])
@on_both_loops
async def test_a_zombie_that_another_server_has_outlived_is_refused_and_leaves_nothing(state):
    storage = await table()
    async with open_hudi_markers(storage, SETTINGS) as one, open_hudi_markers(storage, SETTINGS) as other:
        await one.create(INSTANT, marker(1))
        await put_state(storage, 9, state)
        await other.delete(INSTANT)
        for name in (marker(1), marker(2)):
            with pytest.raises(Sealed, match="it is over, and not inflight"):
                await one.create(INSTANT, name)
        assert await stored(storage) == []


@on_virtual_time
async def test_a_marker_that_lands_while_another_server_deletes_is_not_acked():
    """Its put comes after the listing of the deletion."""
    inner = await table()
    slowly = FaultyBackend(inner, slow("put_new", 5.0, "*/MARKERS*", nth=2))
    async with open_hudi_markers(slowly, SETTINGS) as one, open_hudi_markers(inner, SETTINGS) as other:
        await one.create(INSTANT, marker(1))
        async with anyio.create_task_group() as tasks:

            async def late() -> None:
                with pytest.raises(Sealed):
                    await one.create(INSTANT, marker(2))

            tasks.start_soon(late)
            await anyio.sleep(1.0)
            await put_state(inner, 9, "completed")
            assert await other.delete(INSTANT)
    assert await stored(inner) == []


@pytest.mark.parametrize(("slowed", "is_acked"), [("*/SERVER*", True), ("*/MARKERS.type", False)])
@on_virtual_time
async def test_what_is_acked_while_another_server_deletes_is_deleted_and_nothing_is_acked_later(slowed, is_acked):
    inner = await table()
    slowly = FaultyBackend(inner, slow("delete", 5.0, slowed))
    async with open_hudi_markers(inner, SETTINGS) as one, open_hudi_markers(slowly, SETTINGS) as other:
        await one.create(INSTANT, marker(1))
        await put_state(inner, 9, "completed")
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(other.delete, INSTANT)
            await anyio.sleep(1.0)
            if is_acked:
                await one.create(INSTANT, marker(2))
            else:
                with pytest.raises(Sealed):
                    await one.create(INSTANT, marker(2))
    assert await stored(inner) == []


@on_virtual_time
async def test_a_deletion_while_the_timeline_is_read_changes_nothing_of_what_it_says():
    for state in ("inflight", "completed"):
        inner = await table(9, state)
        slowly = FaultyBackend(inner, slow("list", 5.0, ".hoodie/timeline"))
        async with open_hudi_markers(slowly, SETTINGS) as markers:
            found: list[str] = []

            async def create(markers: HudiMarkers = markers, found: list[str] = found) -> None:
                try:
                    await markers.create(INSTANT, marker(1))
                except Sealed as error:
                    found.append(str(error))

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(create)
                await anyio.sleep(1.0)
                assert not await markers.delete(INSTANT)
                tasks.start_soon(create)
            assert len(found) == (1 if state == "inflight" else 2)
            assert await markers.names(INSTANT) == ([marker(1)] if state == "inflight" else [])


@on_virtual_time
async def test_instants_that_memory_has_no_room_for_are_read_again():
    memory = Memory(int(2.9 * INSTANT_BYTES), recent_s=0.0)
    storage = await table()
    instants = [INSTANT[:-1] + str(number) for number in range(5)]
    for instant in instants:
        await storage.put(f".hoodie/timeline/{instant}.inflight", b"")
    async with open_hudi_markers(storage, SETTINGS, memory) as markers:
        refused = []

        async def create(instant: str, number: int) -> None:
            try:
                await markers.create(instant, marker(number))
            except Overloaded:
                refused.append(instant)

        async with anyio.create_task_group() as tasks:
            for number in range(9):
                for instant in instants[:4]:
                    tasks.start_soon(create, instant, number)
        assert len({*refused}) == 1, "requests need the other three"
        for number in range(12):
            for instant in instants:
                await markers.create(instant, marker(number))
                assert len(markers._instants._served) <= 3
        assert [len(await markers.names(instant)) for instant in instants] == [12] * 5
        await markers.create(instants[2], marker(1))
        assert {*markers._instants._served} >= {instants[4], instants[2]}


@on_virtual_time
async def test_a_look_at_the_claim_that_began_earlier_acks_nothing():
    inner = await table()
    slowly = FaultyBackend(inner, slow("get", 0.0, "*/SERVER*", nth=2, after_s=5.0))
    async with (
        open_hudi_markers(slowly, SETTINGS) as one,
        open_hudi_markers(inner, SETTINGS) as other,
        anyio.create_task_group() as tasks,
    ):
        await one.create(INSTANT, marker(0))

        async def create() -> None:
            with suppress(Sealed):  # its own look began in time; the instant is over when that is answered
                await one.create(INSTANT, marker(1))

        tasks.start_soon(create)
        await anyio.sleep(1.0)
        await put_state(inner, 9, "completed")
        await other.delete(INSTANT)
        with pytest.raises(Sealed):
            await one.create(INSTANT, marker(2))
    assert await stored(inner) == []


@on_virtual_time
async def test_an_instant_that_is_over_before_the_claim_lands_is_refused():
    inner = await table()
    slowly = FaultyBackend(inner, slow("put_new", 5.0, "*/SERVER*"))
    async with open_hudi_markers(slowly, SETTINGS) as one, open_hudi_markers(inner, SETTINGS) as other:
        refused: list[str] = []

        async def create() -> None:
            with pytest.raises(Sealed, match="not inflight"):
                await one.create(INSTANT, marker(1))
            refused.append(marker(1))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(create)
            await anyio.sleep(1.0)
            await put_state(inner, 9, "completed")
            await other.delete(INSTANT)
        assert refused


@on_both_loops
async def test_a_table_that_tallymark_writes_is_not_hudis():
    storage = await table()
    await storage.put(".hoodie/hoodie.properties", b"hoodie.table.version=6\ntallymark.format=2\n")
    await storage.put(f"{FOLDER}/MARKERS1073741824", f"{marker(1)}\n".encode())
    async with open_hudi_markers(storage, SETTINGS) as markers:
        for call in (lambda: markers.create(INSTANT, marker(2)), lambda: markers.delete(INSTANT)):
            with pytest.raises(InvalidRequest, match="a table that Tallymark writes"):
                await call()
        assert await markers.names(INSTANT) == [marker(1)]


@on_virtual_time
async def test_checks_of_one_moment_share_one_look_at_the_claim():
    storage = FaultyBackend(await table())
    async with open_hudi_markers(storage, SETTINGS) as markers:
        await markers.create(INSTANT, marker(0))
        before = len([path for path in storage.paths("get") if "/SERVER" in path])
        async with anyio.create_task_group() as tasks:
            for number in range(200):
                tasks.start_soon(markers.create, INSTANT, marker(number))
        looks = len([path for path in storage.paths("get") if "/SERVER" in path]) - before
    assert looks <= 4


class Model:
    """Two servers and their successors, one instant that is inflight again and again, and what was acked of it."""

    def __init__(self, random: Random, storage: FaultyBackend) -> None:
        self.random = random
        self.storage = storage
        self.acked: set[str] = set()
        self.round = 0

    async def ask(self, markers: HudiMarkers, number: int) -> None:
        round_, name = self.round, marker(number)
        try:
            await markers.create(INSTANT, name)
        except TallymarkError:
            return
        if round_ == self.round:  # else the deletion may have had it
            self.acked.add(name)

    async def burst(self, servers: list[HudiMarkers]) -> None:
        async with anyio.create_task_group() as tasks:
            for _ in range(self.random.randrange(1, 12)):
                tasks.start_soon(self.ask, self.random.choice(servers), self.random.randrange(30))

    async def start_again(self, servers: list[HudiMarkers]) -> None:
        """Hudi rolls the instant back, deletes its markers, and runs it again; zombies ask all the time."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self.burst, servers)
            await anyio.sleep(self.random.random() * 0.05)
            self.round += 1
            self.acked = set()
            await put_state(self.storage, 9, "requested")
            await self.random.choice(servers).delete(INSTANT)
            await put_state(self.storage, 9, "inflight")
            self.round += 1


@pytest.mark.parametrize("seed", range(examples(40)))
def test_whatever_servers_and_zombies_do_acked_markers_are_those_that_every_server_names(seed):
    random = Random(seed)

    @on_virtual_time
    async def play() -> None:
        faults = [slow("put_new", random.random() * 0.1, "*/MARKERS*", nth=random.randrange(1, 9)) for _ in range(3)]
        faults.append(lost_answer("put_new", "*/MARKERS*", nth=random.randrange(1, 9)))
        storage = FaultyBackend(await table(), *faults)
        model = Model(random, storage)
        async with AsyncExitStack() as stack:
            servers = [await stack.enter_async_context(open_hudi_markers(storage, SETTINGS)) for _ in range(2)]
            for _ in range(12):
                step = random.choice(["burst", "burst", "again", "successor"])
                if step == "successor":  # the one before lives on: a service that a restart has overtaken
                    servers[random.randrange(2)] = await stack.enter_async_context(open_hudi_markers(storage, SETTINGS))
                elif step == "again":
                    await model.start_again(servers)
                await model.burst(servers)
                for server in servers:
                    assert model.acked <= {*await server.names(INSTANT)}
            await put_state(storage, 9, "completed")
            await servers[0].delete(INSTANT)
            for server in servers:
                with pytest.raises(Sealed):
                    await server.create(INSTANT, marker(1))
        assert await stored(storage) == []

    play()
