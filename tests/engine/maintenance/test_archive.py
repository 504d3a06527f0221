"""What a table needs no more is archived with its checkpoints, and the table stays what it was."""

import math
import re
from contextvars import ContextVar
from dataclasses import replace

import anyio
import pytest

from tallymark.backends import Backend
from tallymark.engine.errors import CommitUnknown, InvalidRequest, RolledBack, TableReplaced, TryAgain
from tallymark.engine.settings import CommitSettings, MarkerSettings, ViewSettings
from tallymark.engine.timeline import history as histories
from tallymark.engine.timeline import log
from tallymark.engine.timeline.history import History
from tallymark.engine.timeline.history_base import batch_order
from tallymark.engine.timeline.instant import FLOOR
from tallymark.engine.timeline.log import LATEST_CHECKPOINT, CommitLog, entry_path
from tallymark.engine.timeline.reservation import Reservation
from tallymark.engine.timeline.writer_identity import WriterIdentity
from tallymark.engine.views.checkpoint_format import Manifest, decode_manifest, decode_pointer, encode_manifest
from tests.engine.jobs.deaths import each_death, told_where
from tests.engine.jobs.scene import FAMILIES_BY_COST, LEASE, Store, begin, table, write_rows
from tests.engine.timeline.entries import commit, history_of, instant, rollback

LOG = ".hoodie/.tallymark/log/"


@pytest.fixture(autouse=True)
def _few_unsettled(monkeypatch):
    """Instants are settled soon, so that few entries show an archive."""
    monkeypatch.setattr(histories, "UNSETTLED_COUNT", 1)


def short(backend: Backend, entries: int = 2):
    commit = CommitSettings(log_entry_count=entries, timeline_commit_count=2)
    return table(backend, views=ViewSettings(checkpoint_entries=1), commit=commit)


async def write(backend: Backend, mode: str = "append", months=None, *, entries: int = 2, **named):
    async with begin(short(backend, entries), mode, **named) as job:
        return await job.commit([await write_rows(job, backend, months)])


async def opened_log(store: Store) -> CommitLog:
    properties = await table(store.backend).properties()
    assert properties is not None
    opened: CommitLog = short(store.backend)._handle(properties).log
    await opened.refresh()
    return opened


async def read_up_to(store: Store, head: int) -> CommitLog:
    """Return a log that was read when it had so many entries; it has one more since."""
    for _ in range(head):
        await write(store.backend)
    async with begin(short(store.backend)) as job:
        opened = await opened_log(store)
        await job.commit([await write_rows(job, store.backend)])
    assert opened.history.head == head
    return opened


def positions(store: Store) -> list[int]:
    """Those of the entries that are stored."""
    return sorted(int(path.removeprefix(LOG)) for path in store.stored if path.startswith(LOG))


def instants(store: Store) -> list[str]:
    """Those that the Hudi timeline completes."""
    found = (re.fullmatch(r"\.hoodie/(\d{17})\.(?:replace)?commit", path) for path in store.stored)
    return sorted(match[1] for match in found if match)


async def check_whole(store: Store) -> None:
    """The table is at rest, a new reader sees what the whole log says, and the stored log is a run up to its head."""
    store.check_at_rest()
    snapshot = await table(store.backend).snapshot()
    assert {file.path for file in snapshot.files} == store.committed_files
    kept = positions(store)
    assert kept == list(range(kept[0], snapshot.position + 1))
    assert instants(store) == sorted([FLOOR, *(entry["instant"] for entry in store.commits)])[-len(instants(store)) :]


async def test_entries_and_instants_are_bounded_however_many_commits_there_are(store):
    await write(store.backend)
    objects = []
    for number in range(12):
        months = {1 + number % 2: 2}
        if number % 3:
            await write(store.backend, months=months)
        else:
            await write(store.backend, "overwrite", months, partition_overwrite="dynamic")
        await check_whole(store)
        objects.append(sum(path.startswith(".hoodie") for path in store.stored))
    assert max(objects[-6:]) == min(objects[-6:])
    assert (len(positions(store)), len(instants(store))) == (2, 3)
    assert store.backend.archived


async def test_a_checkpoint_that_is_asked_for_archives_what_fewer_entries_are_to_be_kept_of_now(store):
    for _ in range(6):
        await write(store.backend, entries=100)
    assert positions(store) == [1, 2, 3, 4, 5, 6]
    assert (await short(store.backend).checkpoint()).position == 6
    assert positions(store) == [5, 6]
    assert (await short(store.backend).checkpoint()).bytes_written == 0
    await check_whole(store)


async def test_what_is_retained_and_what_an_open_writer_may_need_is_not_archived(store):
    await write(store.backend, readers="table")
    await write(store.backend, "overwrite", {1: 1}, partition_overwrite="dynamic")
    for _ in range(4):
        await write(store.backend)
    assert positions(store) == [2, 3, 4, 5, 6], "position 2 has replaced a file that is retained"
    await short(store.backend).clean(retain_hours=0)
    await write(store.backend)
    async with begin(short(store.backend)) as job:
        open_at = len(store.log_entries)
        report = await write_rows(job, store.backend)
        for _ in range(5):
            await write(store.backend)
        assert positions(store)[0] <= open_at, "the writer reads the entry again with which its checkpoint ends"
        assert job.instant not in instants(store)
        assert instants(store)[0] < job.instant
        await anyio.sleep(61)
        await job.commit([report])
    await write(store.backend)
    assert len(positions(store)) <= 3
    await check_whole(store)


@pytest.mark.no_cover
@pytest.mark.parametrize("has_staging", FAMILIES_BY_COST)
def test_wherever_a_writer_that_archives_dies_nothing_of_the_table_is_lost(has_staging):
    async def some() -> None:
        for _ in range(5):
            await write(start.backend, months={1: 1})

    async def last(backend: Backend, _: MarkerSettings) -> None:
        await write(backend, "overwrite", {1: 1}, partition_overwrite="dynamic")

    async def check(store: Store) -> None:
        store.clock.pass_lease()
        await write(store.backend)
        await check_whole(store)
        assert len(positions(store)) <= 3

    start = Store(has_staging=has_staging)
    anyio.run(some, backend="trio")
    for store, where in each_death(start, last, "batched", last=25):
        with told_where(where):
            anyio.run(check, store, backend="trio")


@pytest.mark.no_cover
def test_what_a_clean_that_died_has_yet_to_delete_is_not_archived():
    async def some() -> None:
        await write(store.backend, months={1: 1}, readers="table")
        for _ in range(3):
            await write(store.backend, "overwrite", {1: 1}, partition_overwrite="dynamic")

    async def clean(backend: Backend, _: MarkerSettings) -> None:
        await short(backend).clean(retain_hours=0)

    async def more() -> None:
        for _ in range(6):
            await write(store.backend)
        store.clock.pass_lease()
        await write(store.backend)
        assert store.data_files == store.committed_files | store.retained_files

    start = store = Store(has_staging=True)
    anyio.run(some, backend="trio")
    for store, where in each_death(start, clean, "batched"):  # noqa: B007, they see it
        with told_where(where):
            anyio.run(more, backend="trio")


@pytest.mark.parametrize("readers", ["directory", "table"])
@pytest.mark.parametrize("beside", ["nothing", "the first entry and a former checkpoint"])
async def test_a_reservation_that_arrives_once_more_after_its_entry_was_archived_is_dropped(store, readers, beside):
    """Of a commit that has replaced files, or of the clean that has deleted them since, and its markers. The instant of
    that commit is not before the floor: an earlier one was committed later.
    """
    await write(store.backend, readers=readers)
    async with begin(short(store.backend)) as earlier:
        await write(store.backend, "overwrite")
        if readers == "table":
            await short(store.backend).clean(retain_hours=0)
        await earlier.commit([await write_rows(earlier, store.backend)])
    while positions(store)[0] <= 2:
        if positions(store)[0] == 1:
            kept = ("/checkpoint/", entry_path(1))
            former = {path: data for path, data in store.stored.items() if any(part in path for part in kept)}
        await write(store.backend, entries=3)
    assert positions(store)[0] == 3
    if beside != "nothing":  # which hide how far the log is archived
        for path, data in former.items():
            await store.backend.put(path, data)
    decided = store.log_entries[2 if readers == "table" else 1]
    assert decided["kind"] == ("clean" if readers == "table" else "commit")
    late = Reservation(
        instant=decided["instant"],
        nonce=decided["nonce"],
        writer=WriterIdentity(host="gone", boot_id=None, pid_namespace=None, pid=1, started=None),
        marker_kind="direct",
        operation=decided["operation"],
        expiry_s=120.0,
    )
    await store.backend.put(late.path, late.encode())
    folder = f".hoodie/.temp/{late.instant}"
    for name in ("MARKERS.type", *(f"{path}.marker.CREATE" for path in store.committed_files if late.instant in path)):
        await store.backend.put(f"{folder}/{name}", b"DIRECT" if name == "MARKERS.type" else b"")
    store.clock.pass_lease()
    await short(store.backend).clean()
    await write(store.backend)
    await check_whole(store)


async def test_a_writer_whose_reservation_was_lost_learns_that_its_log_is_archived_and_leaves_nothing(store):
    await write(store.backend)

    async def lose() -> None:
        async with begin(short(store.backend)) as job:
            report = await write_rows(job, store.backend)
            await store.backend.delete([f".hoodie/.tallymark/open/{job.instant}"])
            for _ in range(6):
                await write(store.backend)
            await anyio.sleep(61)
            await job.commit([report])

    with pytest.raises((CommitUnknown, RolledBack), match="archived"):
        await lose()
    await write(store.backend)
    await check_whole(store)


@pytest.mark.parametrize("head", [0, 1])
async def test_a_writer_that_slept_until_its_next_position_was_archived_commits_nothing(store, head):
    """The put succeeds, since the entry that was there is deleted; so is the one before, which it reads again."""
    sleeper = await read_up_to(store, head)
    sleeper._verified_at = math.inf
    for _ in range(6):
        await write(store.backend)
    assert positions(store)[0] > head + 1
    with pytest.raises(TableReplaced, match="archived"):
        await sleeper.win(replace(rollback(1), instant="20991231235959000"), check=lambda _: None)
    assert positions(store)[0] == head + 1
    await write(store.backend)
    await check_whole(store)


@pytest.mark.parametrize(("others", "is_archived"), [(1, False), (2, True), (6, True)])
async def test_a_writer_that_slept_after_its_entry_learns_its_commit_though_the_one_before_was_archived(
    store, monkeypatch, others, is_archived
):
    for _ in range(2):
        await write(store.backend)
    put_new = store.backend.put_new

    async def sleep(path: str, data: bytes) -> None:
        await put_new(path, data)
        if path == entry_path(3):
            monkeypatch.undo()
            store.clock.pass_lease()
            for _ in range(others):
                await write(store.backend)

    async with begin(short(store.backend)) as job:
        reports = [await write_rows(job, store.backend)]
        job._lease._asleep_s = lambda: 2 * LEASE.expiry_s
        monkeypatch.setattr(store.backend, "put_new", sleep)
        if is_archived:
            with pytest.raises(CommitUnknown, match="its log entry is archived"):
                await job.commit(reports)
        else:
            assert (await job.commit(reports)).position == 3
    await write(store.backend)
    assert positions(store)[0] > 2
    await check_whole(store)


async def test_a_reading_that_an_archive_overtakes_starts_again_from_a_checkpoint(store, monkeypatch):
    """The entries after the head are requested at once: an archive may delete some before they are read."""
    sleeper = await read_up_to(store, 1)
    for _ in range(2):
        async with begin(table(store.backend)) as job:
            await job.commit([await write_rows(job, store.backend)])
    read, get = [], store.backend.get

    async def overtaken(path):
        if path == f"{LOG}{3:020d}" and not read:
            read.append(path)
            for _ in range(6):
                await write(store.backend)
            assert positions(store)[0] > 4
        return await get(path)

    monkeypatch.setattr(store.backend, "get", overtaken)
    assert (await sleeper.refresh()).head == 10


def archive_before(store: Store, monkeypatch, paths: set[str]) -> None:
    """Make others archive these entries when one is requested for the first time."""
    archiving, is_other, get = anyio.Lock(), ContextVar("is_other", default=False), store.backend.get

    async def overtaken(path):
        if path in paths and not is_other.get():
            async with archiving:
                is_other.set(True)
                while paths & store.stored.keys():
                    await write(store.backend)
                is_other.set(False)
        return await get(path)

    monkeypatch.setattr(store.backend, "get", overtaken)


@pytest.mark.parametrize("head", [0, 1])
async def test_a_reader_that_verifies_while_its_next_entry_is_archived_reads_on_from_a_checkpoint(
    store, monkeypatch, head
):
    """An entry of its head that is read before shows nothing of the next one."""
    sleeper = await read_up_to(store, head)
    archive_before(store, monkeypatch, {entry_path(head + 1)})
    history = await sleeper.refresh(verify=True)
    assert history.head == len(store.commits) > head + 2


async def test_a_log_whose_listed_entries_are_archived_before_they_are_read_is_listed_again(store, monkeypatch):
    for _ in range(3):
        async with begin(table(store.backend)) as job:
            await job.commit([await write_rows(job, store.backend)])
    archive_before(store, monkeypatch, {entry_path(2), entry_path(3)})
    assert (await opened_log(store)).history.head == len(store.commits) > 4


@pytest.mark.parametrize("head", [0, 1])
async def test_a_manifest_of_a_dead_writer_does_not_hide_how_far_the_log_is_archived(store, head):
    """It may have a greater name than that of the writer that has archived the log."""
    sleeper = await read_up_to(store, head)
    for _ in range(6):
        await write(store.backend)
    [name, *_] = decode_pointer(store.stored[LATEST_CHECKPOINT])
    manifest = decode_manifest(store.stored[Manifest.path_of(name)], name=name)
    position, nonce = name.split("-")
    stray = replace(manifest, name=f"{position}-{'f' * len(nonce)}", history=replace(manifest.history, start=0))
    await store.backend.put(stray.path, encode_manifest(stray))
    assert (await sleeper.refresh(verify=True)).head == head + 7


@pytest.mark.parametrize("too", [[], [entry_path(4)]])
async def test_a_pointer_that_arrives_once_more_does_not_hide_how_far_the_log_is_archived(store, too):
    for _ in range(5):
        await write(store.backend)
    pointer, start = store.stored[LATEST_CHECKPOINT], positions(store)[0]
    await write(store.backend)
    await store.backend.put(LATEST_CHECKPOINT, pointer)
    for path in too:
        await store.backend.put(path, store.objects[path])
    history = (await opened_log(store)).history
    assert (history.start, history.head) == (start, 6) == (4, 6)


async def test_a_checkpoint_that_was_replaced_is_not_damaged_where_its_pointer_arrives_once_more(store, monkeypatch):
    for _ in range(5):
        await write(store.backend)
    async with table(store.backend).view() as view:
        await write(store.backend)
        pointer = store.stored[LATEST_CHECKPOINT]
        await write(store.backend)
        await store.backend.put(LATEST_CHECKPOINT, pointer)
        get, is_asked = store.backend.get, anyio.Event()

        async def slow(path: str) -> bytes:
            if path == LATEST_CHECKPOINT:
                is_asked.set()
                await anyio.wait_all_tasks_blocked()
            data: bytes = await get(path)
            return data

        async def ask() -> None:
            with pytest.raises(TryAgain, match="newer ones have replaced"):
                await view.at(5).files("month=1")

        monkeypatch.setattr(store.backend, "get", slow)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ask)
            await is_asked.wait()
            tasks.start_soon(ask)
    await check_whole(store)


@pytest.mark.parametrize("number", [1, 2])
async def test_an_archived_entry_that_arrives_once_more_and_has_no_body_stops_no_reader(store, monkeypatch, number):
    monkeypatch.setattr(log, "BODY_BYTES", 0)
    sleeper = await read_up_to(store, 1)
    for _ in range(6):
        await write(store.backend)
    await store.backend.put(entry_path(number), store.objects[entry_path(number)])
    assert (await sleeper.refresh(verify=True)).head == 8


async def test_a_process_that_has_not_read_how_far_the_log_is_archived_is_told_so_and_not_of_damage(store):
    sleeper = await read_up_to(store, 1)
    for _ in range(6):
        await write(store.backend)
    with pytest.raises(InvalidRequest, match="position 0 of"):
        await sleeper.reach(0)


async def test_an_archived_entry_and_a_pointer_that_arrive_once_more_make_no_other_entry_young(store):
    for _ in range(7):
        await write(store.backend, entries=5)
    pointer, first = store.stored[LATEST_CHECKPOINT], positions(store)[0]
    await write(store.backend)
    assert positions(store)[0] > first + 1
    store.clock.pass_lease()
    for path, data in {LATEST_CHECKPOINT: pointer, entry_path(first): store.objects[entry_path(first)]}.items():
        await store.backend.put(path, data)
    opened = await opened_log(store)
    assert first < positions(store)[1] - 1
    assert (await opened.times()).at(8) < store.clock()


@pytest.mark.parametrize("head", [0, 1])
async def test_a_reader_that_slept_until_its_next_position_was_archived_reads_on_from_a_checkpoint(store, head):
    sleeper = await read_up_to(store, head)
    async with table(store.backend).view() as view:
        for _ in range(6):
            await write(store.backend)
        assert positions(store)[0] > head + 2
        await anyio.sleep(61)
        now = await view.sync()
        assert (await sleeper.refresh()).head == now.position == head + 7
        assert {file.path for file in [file async for file in now.all_files()]} == store.committed_files


async def test_a_reader_that_reads_on_from_a_checkpoint_gets_no_answer_any_more_as_of_what_was_cleaned(store):
    await write(store.backend, readers="table")
    async with table(store.backend).view() as view:
        first = view.at(1)
        assert await first.partitions()
        await write(store.backend, "overwrite")
        await short(store.backend).clean(retain_hours=0)
        for _ in range(6):
            await write(store.backend)
        assert positions(store)[0] > 2
        assert await first.partitions(), "it has read nothing of the clean"
        await view.sync()
        with pytest.raises(InvalidRequest, match="position 1: this view answers"):
            await first.partitions()


async def test_a_writer_that_knows_less_of_what_is_archived_records_no_less_in_its_checkpoint(store):
    for _ in range(4):
        await write(store.backend)
    async with begin(short(store.backend, entries=100)) as job:
        await write(store.backend)
        start = (await opened_log(store)).history.start
        await job.commit([await write_rows(job, store.backend)])
        assert job._handle.log.history.start < start
    assert (await opened_log(store)).history.start == start == positions(store)[0] - 1
    await check_whole(store)


async def test_an_archived_position_instant_and_base_is_refused_with_what_is_kept(store):
    first = await write(store.backend)
    for _ in range(5):
        await write(store.backend)
    reader = table(store.backend)
    for as_of in (1, first.instant):
        with pytest.raises(InvalidRequest, match="archived"):
            await reader.snapshot(as_of=as_of)
    assert (await reader.snapshot(as_of=5)).position == 5
    with pytest.raises(InvalidRequest, match=r"position 1 .* is archived: its log is kept from position 4"):
        await reader.plan(mode="overwrite", base=1)
    assert [position for position, _ in await reader.timeline()] == [5, 6]


async def test_a_txn_that_is_archived_is_refused_and_never_doubled(store):
    for number in range(12):
        await write(store.backend, txn=f"nightly:2026-11-{9 + number}")
        await write(store.backend, txn=f"any:{(number * 5) % 12}")
    files = store.committed_files
    assert (await write(store.backend, txn="any:7")).is_rerun
    for txn, words in [
        ("nightly:2026-11-9", "'2026-11-12' is the last archived batch of this name"),
        ("nightly:2026-11-10x", "does not follow it"),
        ("nightly:2026-11-13", "was committed at position 9, and the log up to 22 is archived"),
        ("any:0", "was committed at position 2, and the log up to 22 is archived"),
    ]:
        with pytest.raises(InvalidRequest, match=words):
            await write(store.backend, txn=txn)
    assert store.committed_files == files
    await write(store.backend, txn="nightly:2026-11-21")
    await write(store.backend, txn="any:-1")
    assert len(store.committed_files) == len(files) + 4


def test_batches_are_compared_as_people_count():
    batches = ["9", "10", "2026-01-02", "2026-1-10", "2026-11-24", "2026-11-24#2", "run", "run 2", "run 10"]
    assert sorted(batches, key=batch_order) == batches


def test_an_entry_of_an_instant_that_is_over_decides_nothing():
    base = history_of([commit(number) for number in (1, 2, 3, 4)]).as_base(2, instant(3))
    history = History(base)
    assert [each.instant for each in base.decided] == [instant(3), instant(4)]
    decided = history.decided(instant(1))
    assert decided is not None
    assert decided.kind == "archived"
    history.apply(rollback(1))
    history.apply(rollback(9))
    assert [position for position, _ in history.after(4)] == [6]
