"""Broker of commits: each has the verdict of the log, whatever table, log or request differs from what it knows."""

from dataclasses import replace

import pyarrow as pa
import pytest

from tallymark.backends.errors import Unavailable
from tallymark.backends.memory import MemoryBackend
from tallymark.engine.errors import CommitUnknown, InvalidRequest, TableReplaced
from tallymark.engine.rpc.messages import Commit
from tallymark.engine.serve import broker as module
from tallymark.engine.serve.broker import Broker
from tallymark.engine.settings import CommitSettings
from tallymark.engine.timeline.entry import LogEntry, encode_entry
from tallymark.engine.timeline.history import History
from tallymark.engine.timeline.log import CommitLog, entry_path
from tallymark.engine.timeline.properties import PROPERTIES, TableProperties
from tests.engine.timeline.entries import commit, data_file, instant, partitions, rollback
from tests.support.faulty import Fault, FaultyBackend, lost_answer, lost_request
from tests.support.loops import on_virtual_time

TABLE = TableProperties(
    name="t", partition_by=(), schema=pa.schema([("id", pa.int64())]), created=instant(0), id="a-table"
)


def made(*faults: Fault) -> FaultyBackend:
    """Storage with faults, of a table without entries."""
    storage = MemoryBackend()
    storage._create(PROPERTIES, TABLE.encode())
    return FaultyBackend(storage, *faults)


async def read(backend) -> History:
    log = CommitLog(backend, CommitSettings())
    log.identify(TABLE.id)
    return await log.refresh()


def append(number: int, **named) -> LogEntry:
    return commit(number, added=(data_file("month=1", number),), **named)


def request(entry: LogEntry, history: History, *firsts: int) -> Commit:
    """Return the request of a driver that has read this history."""
    data = encode_entry(replace(entry, table=entry.table or TABLE.id))
    return Commit(1, history.head, history.hash_at(history.head), data, firsts)


def kinds(outcomes) -> list[object]:
    return [outcome if isinstance(outcome, int) else type(outcome) for outcome in outcomes]


@on_virtual_time
async def test_commits_that_arrive_together_share_an_entry_and_each_has_its_own_verdict():
    storage = made()
    empty = await read(storage)
    broker = Broker(storage, TABLE)
    assert await broker.commit([request(append(1, producers=(("meter", 7),)), empty, 7)]) == [1]
    await put(storage, rollback(5))
    outcomes = await broker.commit(
        [
            request(append(2), empty),
            request(append(3, producers=(("meter", 7),)), empty, 7),
            request(append(4, producers=(("meter", 8),)), empty, 8),
            request(append(5), empty),
            request(append(2, nonce="of another driver"), empty),
            request(append(1, nonce="of another driver"), empty),
        ]
    )
    assert kinds(outcomes) == [3, InvalidRequest, 3, InvalidRequest, InvalidRequest, InvalidRequest]
    assert [str(outcome).partition(":")[0] for outcome in outcomes if not isinstance(outcome, int)] == [
        "TryAgain",
        "RolledBack",
        "RolledBack",
        "RolledBack",
    ]
    history = await read(storage)
    assert [(position, entry.instant) for position, entry in history.after(0)] == [
        (1, instant(1)),
        (2, instant(5)),
        (3, instant(2)),
        (3, instant(4)),
    ]


async def put(storage, entry: LogEntry) -> None:
    """Put an entry as a driver without a broker does."""
    log = CommitLog(storage, CommitSettings())
    log.identify(TABLE.id)
    await log.win(entry, check=lambda history: None)


@on_virtual_time
async def test_a_commit_that_is_asked_for_again_is_committed_once():
    storage = made()
    broker, asked = Broker(storage, TABLE), request(append(1), await read(storage))
    assert await broker.commit([asked]) == [1]
    assert await broker.commit([asked]) == [1]
    assert await Broker(storage, TABLE).commit([asked]) == [1]
    assert (await read(storage)).head == 1


@on_virtual_time
async def test_overwrites_of_one_partition_conflict_and_the_first_one_wins():
    storage = made()
    empty = await read(storage)
    overwrites = [
        commit(number, scope=partitions("month=1"), added=(data_file("month=1", number),)) for number in (1, 2)
    ]
    outcomes = await Broker(storage, TABLE).commit([request(each, empty) for each in overwrites])
    assert kinds(outcomes) == [1, InvalidRequest]
    assert str(outcomes[1]).startswith("ConflictError: ")
    assert instant(1) in str(outcomes[1])


@on_virtual_time
async def test_what_the_driver_has_read_and_the_broker_not_is_read_first():
    storage = made()
    broker = Broker(storage, TABLE)
    assert await broker.commit([request(append(1), await read(storage))]) == [1]
    for number in (2, 3):
        await put(storage, append(number))
    assert await broker.commit([request(append(4), await read(storage))]) == [4]


@on_virtual_time
async def test_a_driver_that_has_read_another_log_commits_by_itself():
    storage = made()
    asked = request(append(1), await read(storage))
    broker = Broker(storage, TABLE)
    outcomes = await broker.commit([replace(asked, hash="00" * 32), replace(asked, position=9)])
    assert kinds(outcomes) == [InvalidRequest, InvalidRequest]
    assert (await read(storage)).head == 0


@on_virtual_time
async def test_the_commit_of_another_table_at_this_url_shows_that_the_table_was_replaced():
    storage = made()
    asked = request(append(1, table="another"), await read(storage))
    with pytest.raises(TableReplaced, match="is of table 'another'"):
        await Broker(storage, TABLE).commit([asked])


@pytest.mark.parametrize(
    ("broken", "problem"),
    [
        ({"entry": b"\x00"}, "is not a log entry"),
        ({"entry": encode_entry(replace(rollback(1), table=TABLE.id))}, "what this release does not know"),
        ({"entry": encode_entry(append(1, table=TABLE.id, writer_features=("later",)))}, "the feature later"),
        ({"firsts": (3,)}, "what this release does not know"),
    ],
)
@on_virtual_time
async def test_a_request_that_this_release_does_not_understand_is_refused_alone(broken, problem):
    storage = made()
    empty = await read(storage)
    outcomes = await Broker(storage, TABLE).commit(
        [replace(request(append(1), empty), **broken), request(append(2), empty)]
    )
    assert kinds(outcomes) == [InvalidRequest, 1]
    assert problem in str(outcomes[0])


@on_virtual_time
async def test_a_put_whose_answer_is_lost_is_found_in_the_log():
    storage = made(lost_answer("put_new", "*/log/*"))
    assert await Broker(storage, TABLE).commit([request(append(1), await read(storage))]) == [1]


@on_virtual_time
async def test_storage_that_does_not_answer_leaves_it_open(monkeypatch):
    monkeypatch.setattr(module, "CommitSettings", lambda: CommitSettings(decision_timeout_s=0.2, retry_pause_s=0.05))
    silent = made(*[lost_request("put_new", "*/log/*") for _ in range(100)])
    asked = request(append(1), await read(silent))
    assert kinds(await Broker(silent, TABLE).commit([asked])) == [CommitUnknown]
    absent = made(*[lost_request("list") for _ in range(100)])
    with pytest.raises(Unavailable):
        await Broker(absent, TABLE).commit([asked])


@on_virtual_time
async def test_old_entries_and_instants_leave_memory_and_commits_go_on(monkeypatch):
    monkeypatch.setattr(module, "ENTRIES_KEPT", 2)
    monkeypatch.setattr(module, "DECIDED_MAX", 12)
    storage = made()
    broker, empty = Broker(storage, TABLE), await read(storage)
    used = []
    for number in range(1, 40):
        assert await broker.commit([request(append(number), empty)]) == [number]
        used.append(broker.memory_bytes)
    assert max(used[20:]) <= max(used[:20])


@on_virtual_time
async def test_the_entries_of_a_broker_are_those_that_any_reader_finds():
    storage = made()
    broker, empty = Broker(storage, TABLE), await read(storage)
    await broker.commit([request(append(number), empty) for number in range(1, 301)])
    assert sorted(entry_path(n) for n in (1, 2)) == [e.path async for e in storage.inner.list(".hoodie/.tallymark/log")]
    history = await read(storage)
    assert len(history.files_at(history.head)) == 300
