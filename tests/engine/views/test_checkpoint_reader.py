"""Logs that are read on from a checkpoint, and which of its partitions are stored together."""

import random
from itertools import pairwise

import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st

from tallymark.backends.memory import MemoryBackend
from tallymark.engine.errors import CorruptObject
from tallymark.engine.timeline.entry import encode_entry
from tallymark.engine.timeline.log import LOG_FOLDER
from tallymark.engine.views.checkpoint_format import (
    CHECKPOINT_FOLDER,
    POINTER,
    Part,
    decode_manifest,
    decode_pointer,
    seal,
    unseal,
)
from tallymark.engine.views.checkpoint_writer import write_checkpoint
from tallymark.engine.views.part_plan import PART_BYTES, Cutter, Rows, Run, part_of, plan_parts
from tallymark.engine.views.view import View
from tests.engine.timeline.entries import clean, commit, data_file, partitions
from tests.engine.views.checkpointing import (
    TABLE,
    Process,
    answers_as_the_log_does,
    parts_of,
    put_entries,
    stored,
)
from tests.engine.views.histories import FIRST, SECOND, THIRD, THREE, log_entries
from tests.support.dying import DyingBackend, ProcessDied
from tests.support.examples import examples
from tests.support.faulty import Fault, FaultyBackend, slow
from tests.support.loops import on_both_loops, on_virtual_time

LATER = (commit(4, added=(data_file("month=2", 4),)), commit(5, added=(data_file("month=3", 5),)))


async def some_log(*entries) -> MemoryBackend:
    storage = MemoryBackend()
    await put_entries(storage, entries or THREE)
    return storage


async def checkpointed_log(part_bytes: int = PART_BYTES) -> MemoryBackend:
    storage = await some_log()
    with parts_of(part_bytes):
        await Process(storage).checkpoint()
    return storage


async def view_of(inner: MemoryBackend, *faults: Fault) -> tuple[FaultyBackend, View]:
    """A view that has read the log, and its storage, which records the calls since then."""
    storage = FaultyBackend(inner, *faults)
    view = await Process(storage).sync()
    storage.calls.clear()
    return storage, view


def manifests(storage: MemoryBackend):
    """Those that the pointer names, the newest first."""
    return [
        decode_manifest(stored(storage)[f"{CHECKPOINT_FOLDER}/{name}"], name=name)
        for name in decode_pointer(stored(storage)[POINTER])
    ]


@settings(max_examples=examples(120), deadline=None)
@given(entries=log_entries(), data=st.data())
def test_what_begins_at_a_checkpoint_answers_as_what_has_read_the_whole_log(entries, data):
    keep = data.draw(st.none() | st.integers(0, 10), label="keep_positions")
    lasting = Process(MemoryBackend(), keep_positions=keep)

    async def live_through() -> None:
        for at, entry in enumerate(entries):
            await put_entries(lasting.storage, [entry], after=at)
            if data.draw(st.integers(0, 2), label="checkpoint") == 0:
                process = lasting if data.draw(st.booleans(), label="lasting") else Process(lasting.storage)
                process.keep_positions = keep
                await process.checkpoint()
            if data.draw(st.integers(0, 5), label="look") == 0:
                await answers_as_the_log_does(
                    lasting.storage, entries[: at + 1], Process(lasting.storage, keep_positions=keep)
                )
        await answers_as_the_log_does(lasting.storage, entries, lasting)
        await answers_as_the_log_does(lasting.storage, entries, Process(lasting.storage, keep_positions=keep))

    with parts_of(data.draw(st.sampled_from((1, 150, 400, 1 << 20)), label="part bytes")):
        trio.run(live_through)


@on_both_loops
async def test_a_log_with_a_checkpoint_is_read_by_one_listing_and_three_gets():
    storage = FaultyBackend(await checkpointed_log())
    process = Process(storage)
    await process.sync()
    assert sorted(call.verb for call in storage.calls) == ["get"] * 3 + ["list"]
    assert (process.log.history.base, process.checkpoints.statistics.position) == (3, 3)


@on_both_loops
async def test_a_part_is_read_once_when_one_of_its_partitions_is_asked_for_or_ahead_of_that():
    storage, view = await view_of(await checkpointed_log(part_bytes=1))
    for _ in range(2):
        assert await view.at(3).files("month=1") == (SECOND,)
    assert await view.at(3).files("month=9") == ()
    assert len(storage.calls) == 1
    await view.preload()
    assert len(storage.calls) == 2
    assert [file async for file in view.at(3).all_files()] == [SECOND, THIRD]
    assert len(storage.calls) == 2


@on_virtual_time
async def test_those_who_ask_for_one_part_at_once_wait_for_one_reading():
    storage, view = await view_of(await checkpointed_log(), slow("get", 1))
    async with trio.open_nursery() as nursery:
        for partition in ("month=1", "month=2", "month=1"):
            nursery.start_soon(view.block, partition)
    assert len(storage.calls) == 1


@on_both_loops
async def test_an_older_position_is_answered_from_a_checkpoint_and_one_below_its_floor_is_not():
    storage = await some_log(*THREE, clean(4, horizon=1))
    await Process(storage).checkpoint()
    view = await Process(storage).sync()
    assert view.floor == 0
    assert await view.at(1).files("month=1") == (FIRST,)
    await put_entries(storage, [clean(5, horizon=2)], after=4)
    assert (await Process(storage).sync()).floor == 2, "it was replaced before the checkpoint, and let go after it"
    await Process(storage).checkpoint()
    assert manifests(storage)[0].floor == 2


@on_both_loops
async def test_parts_in_which_nothing_changed_are_used_again():
    storage = await some_log()
    with parts_of(1):
        first = await Process(storage).checkpoint()
        before = manifests(storage)[0].parts
        await put_entries(storage, LATER, after=3)
        second = await Process(storage).checkpoint()
    assert first is not None
    assert second is not None
    assert (first.parts, first.parts_written) == (2, 2)
    assert (second.parts, second.parts_written) == (3, 2)
    assert manifests(storage)[0].parts[0] == before[0]
    assert (second.position, second.files, second.partitions) == (5, 4, 3)


@on_both_loops
async def test_what_neither_of_the_newest_two_needs_goes_with_the_next():
    storage = await some_log()
    with parts_of(1):
        for number in range(4, 10):
            await Process(storage).checkpoint()
            await put_entries(storage, [commit(number, added=(data_file("month=2", number),))], after=number - 1)
        newest, previous = manifests(storage)
    assert (newest.position, previous.position) == (8, 7)
    assert stored(storage).keys() == {POINTER} | newest.paths | previous.paths


@on_both_loops
async def test_rows_that_no_answered_position_sees_go_from_parts_in_which_nothing_else_changed():
    storage = await some_log()
    with parts_of(1):
        await Process(storage).checkpoint()
        assert manifests(storage)[0].parts[0].oldest_removal == 2
        await put_entries(storage, [clean(4, horizon=2)], after=3)
        await Process(storage).checkpoint()
    part = manifests(storage)[0].parts[0]
    assert part.oldest_removal == 0
    assert FIRST.name.encode() not in unseal(stored(storage)[part.path], source="part")["blocks"]["month=1"]


@on_both_loops
async def test_a_part_that_another_has_shortened_is_used_again_for_no_older_position():
    """A view that keeps an older position answers for it, though the checkpoint that it writes does not."""
    storage = await some_log()
    keeper = Process(storage)
    kept = (await keeper.sync()).pin(1)
    await put_entries(storage, [clean(4, horizon=2)], after=3)
    with parts_of(1):
        await Process(storage).checkpoint()
        await put_entries(storage, [commit(5, added=(data_file("month=2", 5),))], after=4)
        await keeper.checkpoint()
    newest, previous = manifests(storage)
    assert (newest.position, newest.parts[0], newest.floor) == (5, previous.parts[0], previous.floor)
    assert await kept.files("month=1") == (FIRST,)


@on_both_loops
async def test_partitions_that_come_one_by_one_fill_parts_and_do_not_have_one_each():
    storage = MemoryBackend()
    with parts_of(1000):
        for number in range(1, 41):
            entry = commit(number, added=(data_file(f"day={number:03d}", number),))
            await put_entries(storage, [entry], after=number - 1)
            await Process(storage).checkpoint()
    (newest, _) = manifests(storage)
    assert len(newest.parts) <= 2 * sum(part.rows_bytes for part in newest.parts) / 1000
    assert len(newest.states) == 40


@on_both_loops
async def test_nothing_is_written_where_the_newest_checkpoint_is_of_this_position_or_beyond():
    storage = await some_log()
    process, behind = Process(storage), Process(storage)
    view = await behind.sync()
    await process.checkpoint()
    assert process.log.history.base == 3, "the entries before it are forgotten"
    before = stored(storage)
    newest = await Process(storage).checkpoint()
    assert newest is not None
    assert (newest.position, newest.files, newest.parts_written, newest.bytes_written) == (3, 2, 0, 0)
    assert stored(storage) == before
    await put_entries(storage, LATER, after=3)
    await Process(storage).checkpoint()
    before = stored(storage)
    newest = await write_checkpoint(storage, behind.checkpoints, behind.log.history, view, table=TABLE)
    assert newest is not None
    assert newest.position == 5
    assert stored(storage) == before


@pytest.mark.parametrize(
    ("apart_s", "stand"),
    [pytest.param(1.5, [True, False], id="the later gives up"), pytest.param(0.5, [True, True], id="the later stands")],
)
@on_virtual_time
async def test_of_two_who_write_at_once_the_later_gives_up_and_leaves_nothing_or_both_have_put_the_pointer(
    apart_s, stand
):
    """Each put takes a second: parts, manifest, pointer."""
    storage = await some_log()
    slowly, results = FaultyBackend(storage, slow("put", 1)), []

    async def write() -> None:
        results.append(await Process(slowly).checkpoint() is not None)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(write)
        await trio.sleep(apart_s)
        nursery.start_soon(write)
    assert results == stand
    newest = manifests(storage)[0].paths
    assert newest <= stored(storage).keys()
    assert (stored(storage).keys() == {POINTER} | newest) == (not all(stand))
    await answers_as_the_log_does(storage, THREE)


@on_virtual_time
async def test_what_comes_while_a_checkpoint_is_written_is_not_in_it():
    """Its parts are read late, and by then the view has gone on."""
    storage = await checkpointed_log(part_bytes=1)
    await put_entries(storage, LATER[:1], after=3)
    process = Process(FaultyBackend(storage, slow("get", 1, "*/checkpoint/*.*")))
    await process.sync()
    gone = commit(6, scope=partitions("month=2"), removed=(THIRD, LATER[0].added[0]))

    async def go_on() -> None:
        await trio.sleep(0.5)
        await put_entries(storage, [LATER[1], gone], after=4)
        await process.sync()

    with parts_of(1):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(go_on)
            assert await process.checkpoint() is not None
    assert manifests(storage)[0].position == 4
    await answers_as_the_log_does(storage, (*THREE, *LATER, gone))


@pytest.mark.parametrize("second", [False, True], ids=["the first one", "a later one"])
@on_virtual_time
async def test_wherever_a_writer_dies_the_log_is_read_as_it_is_and_the_next_checkpoint_is_whole(second):
    entries = THREE + LATER

    async def begin() -> MemoryBackend:
        storage = await some_log()
        for before, entry in enumerate(LATER, 3):
            if second:
                await Process(storage).checkpoint()
            await put_entries(storage, [entry], after=before)
        return storage

    async def die(storage: MemoryBackend, at: int | None) -> int:
        dying = DyingBackend(storage, at=at)
        try:
            await Process(dying).checkpoint()
        except* ProcessDied:
            pass
        return dying.count

    with parts_of(1):
        calls = await die(await begin(), None)
        assert calls > 8
        for at in range(1, calls + 1):
            storage = await begin()
            await die(storage, at)
            await answers_as_the_log_does(storage, entries)
            await Process(storage).checkpoint()
            newest = manifests(storage)[0]
            assert newest.position == 5
            assert newest.paths <= stored(storage).keys()
            await answers_as_the_log_does(storage, entries)


@settings(max_examples=examples(150), deadline=None)
@given(seed=st.integers(0, 1 << 32), data=st.data())
def test_whatever_is_damaged_or_gone_the_answers_stay_and_the_next_checkpoint_heals_it(seed, data):
    entries = THREE + LATER

    async def damage() -> None:
        storage = await checkpointed_log(part_bytes=1)
        await put_entries(storage, LATER, after=3)
        await Process(storage).checkpoint()
        paths = sorted(stored(storage))
        for path in data.draw(st.lists(st.sampled_from(paths), min_size=1, max_size=3, unique=True)):
            how = data.draw(st.sampled_from(("gone", "cut", "flipped", "other", "empty")))
            await _damage(storage, path, how, random.Random(seed))
        process = Process(storage)
        await answers_as_the_log_does(storage, entries, process)
        told = process.checkpoints.is_damaged
        await put_entries(storage, [commit(6, added=(data_file("month=1", 6),))], after=5)
        assert await process.checkpoint() is not None
        assert not process.checkpoints.is_damaged
        healed = Process(storage)
        await answers_as_the_log_does(storage, (*entries, commit(6, added=(data_file("month=1", 6),))), healed)
        if told:
            assert healed.log.history.base == 6
            assert not healed.checkpoints.is_damaged

    with parts_of(1):
        trio.run(damage)


async def _damage(storage: MemoryBackend, path: str, how: str, chance: random.Random) -> None:
    data = await storage.get(path)
    at = chance.randrange(len(data))
    damaged = {
        "cut": data[:at],
        "flipped": data[:at] + bytes([data[at] ^ (1 << chance.randrange(8))]) + data[at + 1 :],
        "other": seal({"something": "else"}),
        "empty": b"",
    }
    if how == "gone":
        await storage.delete([path])
    else:
        await storage.put(path, damaged[how])


@on_both_loops
async def test_for_a_damaged_part_which_is_counted_the_log_is_read_unless_it_is_another_one_by_now(caplog):
    storage = await checkpointed_log(part_bytes=1)
    process = Process(storage)
    view, late = await process.sync(), await Process(storage).sync()
    await storage.delete([manifests(storage)[0].parts[0].path])
    assert await view.at(3).files("month=1") == (SECOND,)
    assert await view.at(3).files("month=2") == (THIRD,)
    assert process.checkpoints.statistics.damaged_parts == 1
    assert "checkpoint.refused" in caplog.text
    await storage.put(f"{LOG_FOLDER}/{2:020d}", encode_entry(commit(2, nonce="other")))
    with pytest.raises(CorruptObject, match=r"not the one that .* was made of"):
        await late.at(3).files("month=1")


@on_virtual_time
async def test_a_checkpoint_that_newer_ones_have_replaced_is_not_damaged(caplog):
    """One reader misses a part, and another, which has read the pointer before, the manifest."""
    caplog.set_level("INFO")
    storage = await checkpointed_log(part_bytes=1)
    before = Process(storage)
    view = await before.sync()
    late = Process(FaultyBackend(storage, slow("get", 0, POINTER, nth=1, after_s=1)))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(late.sync)
        await trio.sleep(0.5)
        for number, entry in enumerate(LATER, 3):
            await put_entries(storage, [entry], after=number)
            await Process(storage).checkpoint()
    assert await view.at(3).files("month=2") == (THIRD,)
    assert late.log.history.base == 5
    for process in (before, late):
        read = process.checkpoints
        assert (read.statistics.refused, read.statistics.damaged_parts, read.is_damaged) == (0, 0, False)
    assert [record.levelname for record in caplog.records if "checkpoint.refused" in record.message] == ["INFO"] * 2


@pytest.mark.parametrize(("lost", "base", "refused"), [("pointer", 5, 0), ("manifest", 3, 1)])
@on_both_loops
async def test_without_the_newest_manifest_the_one_before_is_used_and_without_a_pointer_the_newest_listed(
    lost, base, refused
):
    storage = await checkpointed_log()
    await put_entries(storage, LATER, after=3)
    await Process(storage).checkpoint()
    if lost == "pointer":
        await storage.delete([POINTER])
    else:
        await storage.put(manifests(storage)[0].path, b"torn")
    process = Process(storage)
    await answers_as_the_log_does(storage, THREE + LATER, process)
    assert (process.log.history.base, process.checkpoints.statistics.refused) == (base, refused)


@on_both_loops
async def test_a_checkpoint_that_is_ahead_of_a_restored_log_is_refused_until_the_log_has_one_of_its_own():
    storage = await some_log(*THREE, *LATER)
    await Process(storage).checkpoint()
    await storage.delete([f"{LOG_FOLDER}/{number:020d}" for number in (4, 5)])
    await answers_as_the_log_does(storage, THREE)
    process = Process(storage)
    assert await process.checkpoint() is not None
    assert manifests(storage)[0].position == 3
    assert len(manifests(storage)) == 1
    other = (commit(4, nonce="x", added=(data_file("month=1", 7),)), commit(5, nonce="y"))
    await put_entries(storage, other, after=3)
    await answers_as_the_log_does(storage, THREE + other)


@on_both_loops
async def test_a_pointer_that_lags_by_two_is_asked_again():
    """Whoever has read it before two others were put finds neither of the two that it named."""
    storage = await checkpointed_log()
    answers = [stored(storage)[POINTER]]
    for number in (4, 5, 6):
        await put_entries(storage, [commit(number)], after=number - 1)
        await Process(storage).checkpoint()

    class Lagging(FaultyBackend):
        async def get(self, path: str) -> bytes:
            return answers.pop() if path == POINTER and answers else await super().get(path)

    process = Process(Lagging(storage))
    await process.sync()
    assert process.log.history.base == 6


names = st.integers(0, 40).map("p{:02d}".format)


def part(first: str, last: str, *, size: int = PART_BYTES, oldest_removal: int = 0) -> Part:
    return Part(first, last, f"{first}-{last}", 1, size, oldest_removal)


@st.composite
def some_parts(draw: st.DrawFn) -> list[Part]:
    ends = sorted(draw(st.sets(names, max_size=12)))
    return [
        part(first, last, size=draw(st.sampled_from((1, PART_BYTES))), oldest_removal=draw(st.integers(0, 3)))
        for first, last in zip(ends[::2], ends[1::2], strict=False)
    ]


@given(some_parts(), st.frozensets(names), st.integers(0, 3))
def test_a_part_stays_only_as_it_is_and_all_that_changed_is_written(parts, changed, floor):
    partitions = {end for each in parts for end in (each.first, each.last)} | changed
    plan = plan_parts(partitions, changed, parts, floor=floor)
    kept = [step for step in plan if isinstance(step, Part)]
    written = [partition for step in plan if isinstance(step, Run) for partition in step.partitions]
    assert changed <= set(written)
    for each in kept:
        assert not any(each.first <= partition <= each.last for partition in written)
        assert not 0 < each.oldest_removal <= floor
    for each in set(parts) - set(kept):
        assert {each.first, each.last} <= set(written)
    spans = [
        (step.first, step.last) if isinstance(step, Part) else (min(step.partitions), max(step.partitions))
        for step in plan
    ]
    assert all(last < first for (_, last), (first, _) in pairwise(spans)), "in order, and none overlaps another"


@given(some_parts(), names)
def test_a_partition_is_looked_for_in_the_part_that_spans_it(parts, partition):
    found = part_of(parts, partition)
    assert found == next((each for each in parts if each.first <= partition <= each.last), None)


@given(st.lists(st.integers(0, 300), max_size=60))
def test_a_run_is_cut_into_parts_of_one_size_and_nothing_is_lost(sizes):
    with parts_of(1000):
        rows = [Rows(f"p{number:02d}", b"x" * size, 0) for number, size in enumerate(sizes)]
        cutter = Cutter()
        cut = [done for each in rows for done in cutter.add(each)] + list(cutter.end())
    assert [each for some in cut for each in some] == [each for each in rows if each.block]
    bytes_of = [sum(len(each.block) for each in some) for some in cut]
    assert all(size <= 1500 for size in bytes_of)
    assert all(size >= 450 for size in bytes_of) or len(cut) <= 1, "a partition more or less than three quarters"


def test_of_a_full_part_and_one_that_is_not_only_the_latter_takes_in_what_comes_behind_it():
    full, open_ = part("a", "c"), part("a", "c", size=10)
    assert plan_parts(["a", "c", "d"], frozenset("d"), [full], floor=0) == [full, Run(("d",))]
    assert plan_parts(["a", "c", "d"], frozenset("d"), [open_], floor=0) == [Run(("a", "c", "d"))]
