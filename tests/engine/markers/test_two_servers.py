"""Servers that follow one another, or compete, for one instant."""

import trio
import trio.testing
from hypothesis import given, settings
from hypothesis import strategies as st

from tallymark.backends.memory import MemoryBackend
from tallymark.engine.markers import MarkerAnswer, open_marker_engine
from tallymark.engine.settings import MarkerSettings
from tests.engine.markers.recorded import (
    FOLDER,
    INSTANT,
    SEGMENTS,
    RecordedServer,
    RecordedStore,
    ask,
    claim,
    segment,
    stored,
)
from tests.history import Acked, Ended, History
from tests.invariants import every_marker_invariant, markers_in
from tests.support.examples import examples
from tests.support.faulty import FaultyBackend, slow
from tests.support.loops import on_virtual_time


@on_virtual_time
async def test_a_restarted_server_goes_on_and_every_old_marker_still_parses():
    """A server elsewhere joins the old lines by commas here, and loses all but the first."""
    storage = MemoryBackend()
    for life in range(3):
        async with open_marker_engine(storage, MarkerSettings(interval_s=0, worker_count=1)) as engine:
            directory = engine.directory(INSTANT)
            for number in range(3):
                await directory.create(f"p=1/{life}-{number}.parquet")
            assert len(await directory.names()) == 3 * life + 3
            assert await directory.create("p=1/0-0.parquet") == (MarkerAnswer.EXISTED,)
    expected = {f"p=1/{life}-{number}.parquet.marker.CREATE" for life in range(3) for number in range(3)}
    assert markers_in(await stored(storage)) == {(INSTANT, name) for name in expected}
    lines = b"".join(data for path, data in (await stored(storage)).items() if path.split("MARKERS")[-1].isdigit())
    assert lines.count(b".marker.") == 9


@on_virtual_time
async def test_a_server_that_follows_one_of_hudis_reads_its_files_and_writes_beside_them():
    storage = MemoryBackend()
    await storage.put(f"{FOLDER}/MARKERS.type", b"TIMELINE_SERVER_BASED")
    await storage.put(f"{FOLDER}/MARKERS0", b"a.parquet.marker.CREATE\nb.parquet.marker.MERGE\n")
    await storage.put(f"{FOLDER}/MARKERS19", b"c.parquet.marker.APPEND\n")
    async with open_marker_engine(storage) as engine:
        directory = engine.directory(INSTANT)
        answers = await directory.create("a.parquet", "d.parquet")
        assert answers == (MarkerAnswer.EXISTED, MarkerAnswer.CREATED)
        assert len(await directory.names()) == 4
    assert (await stored(storage))[f"{FOLDER}/MARKERS0"].count(b"\n") == 2


@on_virtual_time
async def test_two_servers_that_begin_at_the_same_time_claim_different_incarnations():
    storage = FaultyBackend(MemoryBackend(), slow("put_new", 0.25, "*/SERVER*"))
    async with open_marker_engine(storage) as one, open_marker_engine(storage) as other, trio.open_nursery() as both:
        both.start_soon(one.directory(INSTANT).create, "x.parquet")
        both.start_soon(other.directory(INSTANT).create, "x.parquet")
    segments = [path for path in await stored(storage) if path.removeprefix(f"{FOLDER}/MARKERS").isdigit()]
    assert segments == [segment(0), segment(0, server=1)]


ARRIVALS = st.tuples(
    st.sampled_from(["first", "second"]), st.integers(0, 64).map(lambda n: n / 16), st.sampled_from("abcdefgh")
)


@given(
    arrivals=st.lists(ARRIVALS, min_size=1, max_size=20),
    put_s=st.sampled_from([0, 0.125, 0.5]),
    stray=st.integers(1, 4),
    delete_s=st.sampled_from([0, 0.25, 3.0]),
    found=st.integers(0, 5),
    memory=st.sampled_from([0, 1000]),
)
@settings(max_examples=examples(60), deadline=None)
def test_two_servers_of_one_instant_use_no_number_twice_and_lose_no_acked_marker(
    arrivals, put_s, stray, delete_s, found, memory
):
    """Both merge what the other may be merging: what an earlier server left, and what each found of the other's."""
    history = History()

    async def main() -> dict[str, bytes]:
        store = RecordedStore(history)
        await _leave_segments(store, found)
        marker_settings = MarkerSettings(
            interval_s=0.125,
            flush_timeout_s=1.0,
            flush_attempt_count=2,
            segment_count_max=1,
            merge_freed_min=1,
            merge_bytes_ratio_max=50.0,
            merge_memory_bytes=memory,
        )
        async with trio.open_nursery() as crowd:

            async def serve(name: str) -> None:
                script = [
                    slow("put_new", put_s, SEGMENTS),
                    slow("put_new", 0.0625, "*/SERVER*"),
                    slow("delete", delete_s),
                ]
                server = RecordedServer(store, *script, history=history, strays={stray: 4.0}, crowd=crowd, name=name)
                async with open_marker_engine(server, marker_settings) as engine, trio.open_nursery() as requesters:
                    for number, (chosen, at, path) in enumerate(arrivals):
                        if chosen == name:
                            requesters.start_soon(arrive, engine.directory(INSTANT), number, name, at, path)
                history.record(Ended(at=trio.current_time(), server=name, error="Closed"))

            async def arrive(directory, number: int, name: str, at: float, path: str) -> None:
                await trio.sleep(at)
                await ask(directory, history, path, request=number, server=name)

            crowd.start_soon(serve, "first")
            crowd.start_soon(serve, "second")
        return await stored(store)

    storage = trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0))
    every_marker_invariant(history, storage)
    assert len(list(history.of(Acked))) == len(arrivals)
    left = {(INSTANT, f"left{number}.parquet.marker.CREATE") for number in range(found)}
    assert left <= markers_in(storage)


async def _leave_segments(store: RecordedStore, count: int) -> None:
    await store.put(claim(), b"of a dead server")
    for number in range(count):
        await store.put(segment(number), f"left{number}.parquet.marker.CREATE\n".encode())


@on_virtual_time
async def test_two_servers_that_merge_what_a_third_one_left_keep_the_union():
    storage = MemoryBackend()
    await storage.put(claim(), b"of a dead server")
    names = [f"left{number}.parquet.marker.CREATE" for number in range(20)]
    for number, name in enumerate(names):
        await storage.put(segment(number), f"{name}\n".encode())
    marker_settings = MarkerSettings(interval_s=0, segment_count_max=2, merge_freed_min=1, merge_bytes_ratio_max=50.0)
    slowly = FaultyBackend(storage, slow("get", 0.5, SEGMENTS), slow("delete", 0.25))
    async with open_marker_engine(slowly, marker_settings) as one, open_marker_engine(slowly, marker_settings) as other:
        for number in range(21):
            for engine, server in ((one, "one"), (other, "other")):
                await engine.directory(INSTANT).create(f"{server}{number}.parquet")
                names.append(f"{server}{number}.parquet.marker.CREATE")
                await trio.sleep(0.375 if number else 0)  # both have read what was left
        await trio.sleep(60)
        assert one.statistics().merges > 0
        assert other.statistics().merges > 0
    assert markers_in(await stored(storage)) == {(INSTANT, name) for name in names}
    assert segment(0) not in await stored(storage)
