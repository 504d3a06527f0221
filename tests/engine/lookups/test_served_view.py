"""What a job's service answers about partitions."""

import anyio
import pytest

from tallymark.backends.errors import Unavailable
from tallymark.backends.memory import MemoryBackend
from tallymark.engine.errors import InvalidRequest
from tallymark.engine.lookups.served_view import ServedView
from tallymark.engine.timeline.entry import LogEntry
from tallymark.engine.timeline.history import History
from tallymark.engine.timeline.log import CommitLog
from tallymark.engine.views.view import View, live_files
from tests.engine.timeline.entries import commit, data_file, log, win
from tests.support.faulty import FaultyBackend, refused, slow
from tests.support.loops import on_both_loops, on_virtual_time

FIRST, SECOND = data_file("month=1", 1), data_file("month=1", 2)


def served(reader: CommitLog, **made_with) -> ServedView:
    view = View(**made_with)

    def synced() -> View:
        view.sync(reader.history)
        return view

    return ServedView(reader, synced)


async def served_log(*entries: LogEntry, **made_with) -> tuple[MemoryBackend, ServedView, list[str]]:
    """Storage with a log, what is served of it, and the hash of the log at each position."""
    backend = MemoryBackend()
    await win(backend, *entries)
    return backend, served(log(backend), **made_with), await hashes(backend)


async def files_at(table: ServedView, position: int, log_hash: str):
    block_of = await table.look_up(position, log_hash)
    return live_files(await block_of("month=1"), "month=1", position)


async def hashes(backend) -> list[str]:
    """By position, as another process reads the log."""
    history = await log(backend).refresh()
    return [history.hash_at(position) for position in range(history.head + 1)]


@on_both_loops
async def test_a_view_that_is_built_for_each_position_is_built_once_for_all_who_ask_for_one():
    backend = MemoryBackend()
    await win(backend, commit(1, added=(FIRST,)), commit(2, added=(SECOND,)))
    reader, built = log(backend), list[View]()

    def anew() -> View:
        built.append(View())
        built[-1].sync(reader.history)
        return built[-1]

    table, known = ServedView(reader, anew), await hashes(backend)
    for _ in range(5):
        assert await files_at(table, 1, known[1]) == (FIRST,)
    assert await files_at(table, 2, known[2]) == (FIRST, SECOND)
    assert len(built) == 2


@on_virtual_time
async def test_a_server_that_is_behind_reads_the_log_once_for_all_who_wait():
    storage = MemoryBackend()
    await win(storage, commit(1, added=(FIRST,)))
    backend = FaultyBackend(storage, slow("get", 1.0))
    table = served(log(backend))
    await table.look_up(1, (await hashes(storage))[1])
    await win(storage, commit(2, added=(SECOND,)))
    known = await hashes(storage)
    before = len(backend.calls)

    async with anyio.create_task_group() as tasks:
        for _ in range(100):
            tasks.start_soon(table.look_up, 2, known[2])
        await anyio.sleep(0.5)  # others arrive while it is being read
        for _ in range(100):
            tasks.start_soon(table.look_up, 2, known[2])
    read = [call.paths[0] for call in backend.calls[before:] if call.verb == "get"]
    assert [sum(path.endswith(end) for path in read) for end in "23"] == [1, 1]


@on_virtual_time
async def test_when_the_log_cannot_be_read_all_who_wait_are_told_at_once():
    storage = MemoryBackend()
    await win(storage, commit(1))
    known = await hashes(storage)
    backend = FaultyBackend(storage, slow("list", 5.0), refused("list", error=Unavailable("dark")))
    table = served(log(backend))
    told: list[float] = []

    async def ask() -> None:
        with pytest.raises(Unavailable):
            await table.look_up(1, known[1])
        told.append(anyio.current_time())

    async with anyio.create_task_group() as tasks:
        for _ in range(10):
            tasks.start_soon(ask)
    assert told == [5.0] * 10


@on_virtual_time
async def test_nobody_is_refused_since_another_has_left_for_whom_the_log_was_being_read():
    storage, twin = MemoryBackend(), MemoryBackend()
    await win(storage, commit(1, added=(FIRST,)))
    await win(twin, commit(1, added=(FIRST,)), commit(2, added=(SECOND,)))
    known = await hashes(twin)
    table = served(log(FaultyBackend(storage, slow("get", 1.0))))
    found: list[object] = []

    async def ask(patience_s: float) -> None:
        with anyio.move_on_after(patience_s):
            found.append(await files_at(table, 2, known[2]))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(table.look_up, 1, known[1])  # it reads until 2.0 s, and finds no second entry
        await anyio.sleep(1.5)
        tasks.start_soon(ask, 1.0)  # it reads from then on, and leaves at 2.5 s
        await anyio.sleep(0.1)
        tasks.start_soon(ask, 9.0)
        await anyio.sleep(0.5)
        await win(storage, commit(2, added=(SECOND,)))
    assert found == [(FIRST, SECOND)]


@on_both_loops
async def test_a_history_that_knows_entries_but_not_which_log_they_are_of_refuses():
    """Entries before the base were reached for, and not those from the first on that lead to them."""
    backend = MemoryBackend()
    await win(backend, *(commit(number) for number in range(1, 7)))
    known = await hashes(backend)
    reader = log(backend)
    await reader.refresh()
    reader.history = History(reader.history.as_base())
    await reader.reach(3)
    with pytest.raises(InvalidRequest, match="position 4: this job has the log from position 5 on"):
        await served(reader).look_up(4, known[4])


@on_both_loops
async def test_the_same_position_of_another_log_is_refused():
    _, table, _ = await served_log(commit(1))
    _, _, others = await served_log(commit(1, nonce="another"))
    with pytest.raises(InvalidRequest, match="position 1 is one of another log"):
        await table.look_up(1, others[1])


@on_both_loops
async def test_a_position_beyond_the_log_and_one_that_the_view_has_let_go_are_refused():
    entries = (commit(1, added=(FIRST,)), commit(2, removed=(FIRST,)), commit(3))
    _, table, known = await served_log(*entries, keep_positions=1)
    for position, told in ((4, "position 4: the log ends at 3"), (1, "position 1: this view answers for 2 to 3")):
        with pytest.raises(InvalidRequest, match=told):
            await table.look_up(position, "whatever" if position == 4 else known[position])


@on_both_loops
async def test_each_position_is_answered_as_of_itself_and_the_last_one_is_at_hand_and_nothing_else():
    _, table, known = await served_log(commit(1, added=(FIRST,)), commit(2, added=(SECOND,), removed=(FIRST,)))
    assert table.cached_blocks(2, known[2], ["month=1"]) is None
    assert await files_at(table, 0, known[0]) == ()
    for position, files in ((2, (SECOND,)), (1, (FIRST,)), (2, (SECOND,))):
        assert await files_at(table, position, known[position]) == files
        block_of = await table.look_up(position, known[position])
        wanted = [await block_of(partition) for partition in ("month=1", "month=2")]
        assert table.cached_blocks(position, known[position], ["month=1", "month=2"]) == wanted
        assert table.cached_blocks(3 - position, known[3 - position], ["month=1"]) is None
        assert table.cached_blocks(position, "0" * 64, ["month=1"]) is None


@on_both_loops
async def test_nothing_is_at_hand_for_a_position_that_the_view_has_let_go_of():
    backend, table, known = await served_log(commit(1, added=(FIRST,)), keep_positions=0)
    await table.look_up(1, known[1])
    assert table.cached_blocks(1, known[1], ["month=1"]) is not None
    await win(backend, commit(2, added=(SECOND,), removed=(FIRST,)))
    await table._log.refresh()
    table._view()
    assert table.cached_blocks(1, known[1], ["month=1"]) is None
    with pytest.raises(InvalidRequest, match="position 1"):
        await files_at(table, 1, known[1])
