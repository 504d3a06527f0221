"""Who wins a number of the commit log, and what is told of an unclear outcome."""

import math
from collections.abc import Sequence

import anyio
import pytest

from tallymark.backends.errors import NotPermitted, Unavailable
from tallymark.backends.memory import MemoryBackend
from tallymark.engine.errors import CommitUnknown, ConflictError, CorruptObject, LostEntries, RolledBack, TableReplaced
from tallymark.engine.settings import CommitSettings
from tallymark.engine.timeline.entry import encode_entry, encode_pointer
from tallymark.engine.timeline.history_base import HistoryBase
from tallymark.engine.timeline.instant import FLOOR
from tallymark.engine.timeline.log import BODY_BYTES, BODY_FOLDER, READ_AHEAD, CommitLog
from tests.engine.timeline.entries import commit, data_file, instant, log, rollback, win
from tests.support.faulty import FaultyBackend, hanging, lost_answer, lost_request, refused, slow
from tests.support.loops import on_both_loops

BODY = f"{BODY_FOLDER}/{instant(1)}/n1"
"""Of a large commit of the first instant."""


def path(number: int) -> str:
    return f".hoodie/.tallymark/log/{number:020d}"


def anything(_) -> None:
    """Every history will do."""


async def stored(storage) -> list[str]:
    return [entry.path async for entry in storage.list("")]


@on_both_loops
async def test_of_many_who_want_one_number_each_gets_one_of_its_own():
    storage = MemoryBackend()
    positions = []

    async def write(number: int) -> None:
        positions.append(await log(storage).win(commit(number), check=anything))

    async with anyio.create_task_group() as writers:
        for number in range(1, 21):
            writers.start_soon(write, number)
    assert sorted(positions) == list(range(1, 21))
    assert (await log(storage).refresh()).head == 20


@on_both_loops
async def test_one_log_may_be_read_and_written_at_once():
    storage = MemoryBackend()
    await win(storage, *(commit(number) for number in range(1, 10)))
    mine = log(storage)

    async def write(number: int) -> None:
        await mine.win(commit(number), check=anything)

    async with anyio.create_task_group() as tasks:
        for _ in range(5):
            tasks.start_soon(mine.refresh)
        for number in range(20, 25):
            tasks.start_soon(write, number)
    assert [mine.history.entry(position) for position in range(1, 15)] == [
        entry for _, entry in (await log(storage).refresh()).after(0)
    ]


@pytest.mark.parametrize(
    ("faults", "puts", "took_s"),
    [
        ([], 1, 0.0),
        ([lost_answer("put_new", nth=1)], 1, 0.5),
        ([lost_request("put_new", nth=1), lost_request("put_new", nth=2)], 3, 1.0),
    ],
    ids=["answered", "the answer lost", "two requests lost"],
)
async def test_an_entry_is_put_at_one_number_until_it_is_known_to_be_there_and_is_known_at_once(faults, puts, took_s):
    storage = FaultyBackend(MemoryBackend(), *faults)
    mine = log(storage, retry_pause_s=0.5)
    assert await mine.win(commit(1), check=anything) == 1
    assert storage.paths("put_new") == [path(1)] * puts
    assert anyio.current_time() == took_s
    assert mine.history.decision(instant(1)) == (1, commit(1))


async def test_an_entry_that_foreigners_overtook_goes_to_the_next_number():
    storage = MemoryBackend()
    mine = log(storage)
    await mine.refresh()
    seen: list[int] = []

    def overtake(history) -> None:
        seen.append(history.head)
        if len(seen) <= 2:
            storage._create(path(history.head + 1), encode_entry(commit(len(seen))))

    assert await mine.win(commit(9), check=overtake) == 3
    assert seen == [0, 1, 2], "every entry since the base is checked before the number is tried"


async def test_a_writer_that_was_rolled_back_is_told_so():
    storage = MemoryBackend()
    await win(storage, commit(1), rollback(2))
    with pytest.raises(RolledBack, match="ended by another writer's rollback at position 2"):
        await log(storage).win(commit(2), check=anything)
    assert (await log(storage).refresh()).head == 2


async def test_silence_before_any_put_is_a_plain_failure():
    storage = FaultyBackend(MemoryBackend(), lost_request("list"))
    with pytest.raises(Unavailable, match="nothing was written"):
        await log(storage, decision_timeout_s=30).win(commit(1), check=anything)
    assert storage.paths("put_new") == []


@pytest.mark.parametrize(
    ("faults", "words", "took_s"),
    [
        ([lost_answer("put_new"), hanging("get", path(1), nth=1)], "timeline 'memory:' once storage answers", 30),
        ([hanging("put_new")], "once storage answers", 30),
        ([lost_request("put_new", nth=1), refused("get", nth=1)], "NotPermitted", 0.5),
        ([lost_request("put_new", nth=1), refused("put_new", nth=2)], "NotPermitted", 0.5),
    ],
    ids=["landed, then never answered", "never answered", "lost, then a get refused", "lost, then a put refused"],
)
async def test_a_put_that_is_not_known_to_have_failed_is_unknown_whatever_is_refused_later(faults, words, took_s):
    """Credentials that expire after the first put say nothing about it."""
    storage = FaultyBackend(MemoryBackend(), *faults)
    with pytest.raises(CommitUnknown, match=words) as caught:
        await log(storage, decision_timeout_s=30).win(commit(1), check=anything)
    assert caught.value.instant == instant(1)
    assert anyio.current_time() == took_s
    storage.heal()
    decided = (await log(storage).refresh()).decision(instant(1))
    assert decided == ((1, commit(1)) if path(1) in await stored(storage) else None)


@pytest.mark.parametrize(
    ("before", "after", "error", "words"),
    [
        ([lost_request("put_new", path(1), nth=1)], refused("put_new", path(2)), NotPermitted, None),
        ([], lost_request("get"), Unavailable, "nothing was written"),
    ],
    ids=["its own put was lost", "that cannot be read"],
)
async def test_a_number_that_another_has_taken_leaves_nothing_unclear(before, after, error, words):
    inner = MemoryBackend()
    storage = FaultyBackend(inner, *before)

    def overtake(_) -> None:
        if len(storage.paths("put_new")) == len(before):
            inner._create(path(1), encode_entry(commit(5)))
            storage.add(after)

    with pytest.raises(error, match=words):
        await log(storage, decision_timeout_s=30).win(commit(1), check=overtake)


async def test_an_entry_that_a_cancelled_call_may_have_put_keeps_its_body_and_stays_unknown():
    """Its put lands after the second call was refused: every reader of the log asks for the body then."""
    inner = MemoryBackend()
    storage = FaultyBackend(inner, hanging("put_new", path(1), nth=1), refused("put_new", path(1), nth=2))
    writer, entry = log(storage), _large(1)
    with anyio.move_on_after(1):
        await writer.win(entry, check=anything)
    with pytest.raises(CommitUnknown):
        await writer.win(entry, check=anything)
    await inner.put_new(path(1), encode_pointer(entry, BODY))
    assert (await log(inner).refresh()).decision(entry.instant) == (1, entry)


async def test_an_entry_whose_put_was_refused_brings_its_body_again_when_it_is_tried_again():
    """The body went with the refusal."""
    inner = MemoryBackend()
    writer, entry = log(FaultyBackend(inner, refused("put_new", path(1), nth=1))), _large(1)
    with pytest.raises(NotPermitted):
        await writer.win(entry, check=anything)
    assert await writer.win(entry, check=anything) == 1
    assert (await log(inner).refresh()).decision(entry.instant) == (1, entry)


async def test_the_body_is_durable_before_the_number_is_tried_and_its_loss_is_met_by_a_repeat():
    storage = FaultyBackend(MemoryBackend(), lost_request("put", f"{BODY_FOLDER}/*", nth=1))
    assert await log(storage).win(_large(1), check=anything) == 1
    writes = [call.paths[0] for call in storage.calls if call.verb in ("put", "put_new")]
    assert writes == [BODY, BODY, path(1)]


async def test_the_body_of_an_entry_that_lost_is_deleted_and_that_of_a_refused_one_never_put():
    inner = MemoryBackend()
    storage = FaultyBackend(inner)

    def overtake(history) -> None:
        if history.head:
            raise ConflictError("no", partition=None, winner=instant(5))
        inner._create(path(1), encode_entry(commit(5)))

    with pytest.raises(ConflictError):
        await log(storage).win(_large(1), check=overtake)
    assert storage.paths("put") == [BODY]
    assert await stored(inner) == [path(1)]
    with pytest.raises(ConflictError):
        await log(storage).win(_large(2), check=overtake)
    assert storage.paths("put") == [BODY], "what the check refuses is not written at all"


async def test_a_body_that_is_gone_is_told_with_both_names():
    storage = MemoryBackend()
    await win(storage, _large(1))
    await storage.delete([BODY])
    with pytest.raises(CorruptObject, match=f"{path(1)} refers to {BODY}, which is gone"):
        await log(storage).refresh()


async def test_a_corrupt_entry_stops_every_reader_and_writer():
    storage = MemoryBackend()
    await win(storage, commit(1))
    await storage.put(path(2), b"no entry")
    with pytest.raises(CorruptObject, match=path(2)):
        await log(storage).refresh()
    with pytest.raises(CorruptObject, match=path(2)):
        await log(storage).win(commit(3), check=anything)
    assert await stored(storage) == [path(1), path(2)]


@on_both_loops
async def test_a_log_that_a_copy_of_the_table_has_left_behind_is_not_taken_for_a_new_one():
    storage = MemoryBackend()
    await storage.put(f".hoodie/{FLOOR}.commit", b"{}")
    assert (await log(storage).refresh()).head == 0
    await storage.put(f".hoodie/{instant(1)}.commit", b"{}")
    shown = (
        f"log ends at position 0, and .hoodie/{instant(1)}.commit shows a later commit .* restore .* or accept the loss"
    )
    with pytest.raises(LostEntries, match=shown):
        await log(storage).refresh()


@pytest.mark.parametrize("fault", [lost_request("list", nth=1), lost_request("get", path(1), nth=1)])
@on_both_loops
async def test_a_log_that_an_older_copy_has_replaced_is_noticed_though_reading_it_again_fails_at_first(fault):
    storage = FaultyBackend(MemoryBackend())
    await win(storage, commit(1), commit(2))
    mine = log(storage)
    await mine.refresh()
    await storage.delete([path(2)])
    storage.add(fault)
    with pytest.raises(Unavailable):
        await mine.refresh(verify=True)
    assert mine.history.head == 2
    for _ in range(2):
        with pytest.raises(TableReplaced):
            await mine.refresh()


@on_both_loops
async def test_a_log_that_has_lost_the_head_that_was_read_and_an_earlier_entry_is_never_read_as_a_shorter_one():
    storage = MemoryBackend()
    await win(storage, commit(1), commit(2), commit(3))
    mine = log(storage)
    await mine.refresh()
    await storage.delete([path(1), path(3)])
    for _ in range(2):
        with pytest.raises(CorruptObject, match="0001 is gone"):
            await mine.refresh(verify=True)


@on_both_loops
async def test_a_first_entry_that_is_won_and_projected_while_the_log_is_listed_is_read():
    class Raced(MemoryBackend):
        async def list(self, directory):
            if directory == ".hoodie":
                await self.put(path(1), encode_entry(commit(1)))
                await self.put(f".hoodie/{instant(1)}.commit", b"{}")
            async for entry in super().list(directory):
                yield entry

    storage = Raced()
    assert (await log(storage).refresh()).head == 1


def _large(number: int):
    files = tuple(data_file("month=1", number, f"{index:08d}") for index in range(BODY_BYTES // 50))
    return commit(number, added=files)


async def test_the_times_of_entries_are_the_stores_and_never_go_back():
    clock = iter([5.0, 9.0, 7.0, 11.0])
    storage = MemoryBackend(now=lambda: next(clock))
    await win(storage, commit(1), commit(2), rollback(3), commit(4))
    reading = log(storage)
    await reading.refresh()
    assert (await reading.times()).put == (5.0, 9.0, 9.0, 11.0)
    await storage.delete([path(4)])
    assert (await reading.times()).put == (5.0, 9.0, 9.0, math.inf), "no listing shows the last one yet"


class Start:
    """A checkpoint of a log, as one who reads on from it has it."""

    def __init__(self, base: HistoryBase | None) -> None:
        self.base = base
        self.refused: list[str] = []

    async def newest(self, listed: Sequence[str] = (), *, table: str = "") -> HistoryBase | None:
        return None if listed else self.base

    async def base_of(self, name: str) -> HistoryBase | None:
        return self.base

    def is_late(self, listed: Sequence[str]) -> bool:
        return False

    def refuse(self, reason: str) -> None:
        self.refused.append(reason)


async def _read_on(storage, base: HistoryBase | None) -> tuple[CommitLog, Start]:
    start = Start(base)
    read = CommitLog(storage, CommitSettings(), start=start)
    read.identify("")
    await read.refresh()
    return read, start


async def _based(count: int) -> tuple[FaultyBackend, HistoryBase]:
    """Storage with a log, and what a checkpoint contains of it once it has so many entries."""
    storage = MemoryBackend()
    await win(storage, *(commit(number) for number in range(1, count + 1)))
    return FaultyBackend(storage), (await log(storage).refresh()).as_base()


@pytest.mark.parametrize("later", [0, 1, 2, 3, 7, 2 * READ_AHEAD])
@on_both_loops
async def test_a_log_is_read_on_from_a_checkpoint_by_one_listing(later):
    storage, base = await _based(4)
    await win(storage.inner, *(commit(number) for number in range(5, 5 + later)))
    read, start = await _read_on(storage, base)
    assert (read.history.base, read.history.head) == (4, 4 + later)
    assert read.history.as_base() == (await log(storage.inner).refresh()).as_base()
    assert start.refused == []
    assert storage.paths("list") == [".hoodie"]
    assert sorted(storage.paths("get")) == [path(number) for number in range(4, 5 + later)]


@on_both_loops
async def test_a_checkpoint_that_is_refused_after_a_reading_that_failed_leaves_nothing_of_itself():
    storage, base = await _based(4)
    await win(storage, commit(5), commit(6))
    await storage.delete([path(5)])
    read = CommitLog(storage, CommitSettings(), start=Start(base))
    with pytest.raises(CorruptObject, match="05 is gone"):
        await read.refresh()
    await storage.delete([path(number) for number in range(1, 7)])
    await win(storage, commit(1, nonce="another log"))
    history = await read.refresh()
    assert (history.base, history.head, history.entry(1).nonce) == (0, 1, "another log")


@pytest.mark.parametrize("count", [3, 4, 6])
@on_both_loops
async def test_a_checkpoint_of_another_log_is_refused_and_the_log_read_whole(count):
    storage, (_, base) = MemoryBackend(), await _based(4)
    await win(storage, *(commit(number, nonce=f"other{number}") for number in range(1, count + 1)))
    read, start = await _read_on(storage, base)
    assert (read.history.base, read.history.head) == (0, count)
    assert len(start.refused) == 1


@pytest.mark.parametrize(
    ("checkpoint", "gone"), [*((0, at) for at in (1, 2, READ_AHEAD, READ_AHEAD + 5)), *((4, at) for at in (5, 7, 9))]
)
@on_both_loops
async def test_an_entry_that_is_gone_is_not_taken_for_the_end(checkpoint, gone):
    storage, base = await _based(checkpoint)
    await win(storage, *(commit(number) for number in range(checkpoint + 1, READ_AHEAD + 10)))
    await storage.delete([path(gone)])
    with pytest.raises(CorruptObject, match=f"{gone:020d} is gone, and later entries are there; restore it"):
        await _read_on(storage, base if checkpoint else None)


async def test_an_entry_that_is_won_while_those_behind_it_are_asked_for_is_no_gap():
    storage, base = await _based(4)
    read, _ = await _read_on(storage, base)
    await win(storage.inner, commit(5))
    storage.add(slow("get", 1, path(7)))

    async def write() -> None:
        await anyio.sleep(0.5)
        await win(storage.inner, commit(6), commit(7))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(write)
        await read.refresh()
    assert read.history.head == 7


@on_both_loops
async def test_what_is_reached_back_for_is_there_and_nothing_else_is_asked_for():
    storage, base = await _based(6)
    read, _ = await _read_on(storage, base)
    storage.calls.clear()
    history = await read.reach(3)
    assert sorted(storage.paths("get")) == [path(4), path(5), path(6)]
    assert [number for number, _ in history.after(3)] == [4, 5, 6]
    assert await read.reach(5) is history
    assert len(storage.calls) == 3


async def test_what_is_forgotten_while_somebody_reaches_back_is_reached_for_too():
    storage, base = await _based(3)
    await win(storage.inner, commit(4), commit(5))
    storage.add(slow("get", 1.0))
    read, _ = await _read_on(storage, base)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(read.reach, 1)
        await anyio.sleep(0.5)
        read.history.forget(4)
    assert read.history.base == 1
    assert [entry.instant for _, entry in read.history.after(1)] == [instant(number) for number in (2, 3, 4, 5)]


@on_both_loops
async def test_an_entry_that_is_gone_before_a_checkpoint_is_noticed_where_it_is_reached_for():
    storage, base = await _based(6)
    await storage.delete([path(2)])
    read, _ = await _read_on(storage, base)
    await read.reach(2)
    with pytest.raises(CorruptObject, match="02 is gone"):
        await read.reach(0)
    assert read.history.base == 2


@on_both_loops
async def test_an_instant_that_was_decided_before_a_checkpoint_is_told_from_anothers():
    storage, base = await _based(4)
    read, _ = await _read_on(storage, base)
    assert await read.win(commit(2), check=anything) == 2
    with pytest.raises(RolledBack, match="at position 3"):
        await read.win(commit(3, nonce="late"), check=anything)
