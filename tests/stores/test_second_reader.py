"""The format page is enough to write a reader: one that knows nothing of the library agrees with it on every table."""

import ast
import struct
import tarfile
import zlib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from unittest import mock

import anyio
import msgpack
import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from tallymark.backends import Backend
from tallymark.backends.local import LocalBackend
from tallymark.engine.errors import CorruptObject, LostEntries, UnsupportedTable
from tallymark.engine.settings import CommitSettings, ViewSettings
from tallymark.engine.table import Table
from tallymark.engine.timeline import history as history_module
from tallymark.engine.timeline import log
from tallymark.engine.timeline.entry import encode_entry, encode_pointer
from tallymark.engine.timeline.log import CommitLog, read_entry
from tallymark.engine.views.checkpoint_reader import Checkpoints
from tests.engine.jobs.scene import Store, begin, committed, table, write_rows
from tests.engine.views.table_histories import InMemory, Player, histories, without_threads
from tests.stores import second_reader
from tests.stores.second_reader import LOG, LostError, RefusedError, log_path, read_table
from tests.support.examples import examples
from tests.support.loops import on_virtual_time

ARCHIVES = sorted((Path(__file__).parent / "tables").rglob("*.tar.xz"))
ALLOWED = {*("json", "re", "struct", "sys", "zlib", "hashlib", "msgpack", "pyarrow")} | {
    *("collections.abc", "dataclasses", "pathlib", "typing")
}


async def agree(objects: Mapping[str, bytes], backend: Backend) -> None:
    """Both readers, each from a checkpoint and, where the log is whole, from the first entry on, find the same."""
    history = await CommitLog(backend, CommitSettings(), start=Checkpoints(backend)).refresh()
    base = history.as_base()
    for from_checkpoint in (True, False) if log_path(1) in objects else (True,):
        found = read_table(objects, from_checkpoint=from_checkpoint)
        assert (found.position, found.hash) == (base.position, base.hash)
        assert found.instants.items() >= {each.instant: (each.position, each.kind) for each in base.decided}.items()
        assert all(history.decided(instant) for instant in found.instants)
        assert (found.txns.items() >= base.txns.items(), found.txn_floors) == (True, base.txn_floors)
        assert (found.horizon, found.time) == (base.horizon, base.time_ms)
        assert found.problems == []
        async with table(backend).view() as view:
            await view.sync()
            for position in range(max(found.floor, view.statistics().floor), found.position + 1):
                files = found.files(position)
                wanted = [tuple(file.fields()) async for file in view.at(position).all_files()]
                assert [tuple(vars_of(files[path])) for path in sorted(files)] == wanted


def vars_of(file: second_reader.File) -> list[object]:
    return [file.partition, file.name, file.rows, file.bytes, file.plain_bytes, file.rewritten_bytes]


def test_it_is_written_with_msgpack_and_the_standard_library():
    tree = ast.parse(Path(second_reader.__file__).read_text())
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)]
    names = {node.module if isinstance(node, ast.ImportFrom) else node.names[0].name for node in imports}
    assert names <= ALLOWED


@pytest.mark.parametrize("archive", ARCHIVES, ids=lambda path: f"{path.parent.name}-{path.name.partition('.')[0]}")
def test_it_reads_the_tables_of_earlier_releases(archive, tmp_path):
    with tarfile.open(archive) as packed:
        packed.extractall(tmp_path, filter="data")
    folder = next(tmp_path.rglob(".hoodie")).parent
    anyio.run(agree, second_reader.objects_of(folder), LocalBackend(folder))


class ShortPlayer(Player):
    """Its log and Hudi timeline are archived after few commits."""

    def _table(self, backend: Backend) -> Table:
        return table(backend, views=self._views, commit=CommitSettings(log_entry_count=2, timeline_commit_count=2))


@settings(max_examples=examples(40), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    readers=st.sampled_from(["table", "table", "directory"]),
    has_staging=st.booleans(),
    steps=histories,
    body_bytes=st.sampled_from([1 << 20, 700]),
    checkpoint_entries=st.sampled_from([1, 2, 64]),
    kind=st.sampled_from([Player, ShortPlayer]),
)
def test_it_agrees_on_whatever_befalls_a_table(readers, has_staging, steps, body_bytes, checkpoint_entries, kind):
    """Void entries, bodies apart, checkpoints, archived logs, writers that die anywhere."""
    place = InMemory(has_staging=has_staging)

    async def play() -> None:
        player = kind(place, readers, ViewSettings(checkpoint_entries=checkpoint_entries))
        await player.found()
        for step in steps:
            await player.play(step)
        await agree(place.stored, place.backend)
        there, whole = read_table(place.stored), read_table(place.objects, from_checkpoint=False)
        assert whole.hash == there.hash
        for position in range(there.floor, there.position + 1):
            assert whole.files(position) == there.files(position)
        event(f"has a checkpoint: {'.hoodie/.tallymark/checkpoint/latest' in place.stored}")
        event(f"is archived: {log_path(1) not in place.stored}")

    with without_threads(), mock.patch.object(log, "BODY_BYTES", body_bytes):
        place.run(play)


PROPERTIES = ".hoodie/hoodie.properties"
ENTRY = f"{LOG}{2:020d}"
LATEST = ".hoodie/.tallymark/checkpoint/latest"


def property_of(key: str, value: str):
    def change(data: bytes) -> bytes:
        lines = [line for line in data.decode().splitlines() if not line.startswith(f"{key}=")]
        return "\n".join([f"{key}={value}", *lines, ""]).encode()

    return change


def field_of(**fields: object):
    def change(data: bytes) -> bytes:
        packed = msgpack.packb(msgpack.unpackb(data[8:]) | fields)
        return struct.pack("<4sI", b"TMLE", zlib.crc32(packed)) + packed

    return change


@pytest.mark.parametrize(
    ("path", "change", "reason"),
    [
        (PROPERTIES, property_of("tallymark.format", "3"), "tallymark.format='?3"),
        (PROPERTIES, property_of("tallymark.reader_features", "bounds"), "bounds"),
        (PROPERTIES, property_of("hoodie.table.type", "MERGE_ON_READ"), "MERGE_ON_READ"),
        (ENTRY, field_of(format=2), "format 2"),
        (ENTRY, field_of(kind="merge"), "merge"),
        (ENTRY, field_of(reader_features=["bounds", "reports"]), "bounds, reports"),
    ],
)
@on_virtual_time
async def test_both_refuse_by_name_what_they_do_not_know(path, change, reason):
    store = await two_commits()
    await store.backend.delete([stored for stored in store.stored if "/checkpoint/" in stored])
    await store.backend.put(path, change(store.stored[path]))
    with pytest.raises(RefusedError, match=reason):
        read_table(store.stored)
    with pytest.raises((UnsupportedTable, CorruptObject), match=reason):
        await table(store.backend).snapshot()


@pytest.mark.parametrize("evidence", ["checkpoint", "timeline"])
@on_virtual_time
async def test_both_notice_that_the_newest_entry_is_lost(evidence):
    store = await two_commits()
    checkpoints = [path for path in store.stored if "/checkpoint/" in path]
    await store.backend.delete([ENTRY, *(checkpoints if evidence == "timeline" else ())])
    with pytest.raises(LostError):
        read_table(store.stored)
    with pytest.raises(LostEntries):
        await table(store.backend).snapshot()


@on_virtual_time
async def test_a_checkpoint_that_it_cannot_use_is_a_problem_and_not_an_error():
    """A damaged one, one of a newer format, one of another log."""
    objects = (await two_commits()).stored
    whole = read_table(objects, from_checkpoint=False)
    manifest = second_reader.opened(objects, LATEST)["manifests"][0]
    path = f".hoodie/.tallymark/checkpoint/{manifest}"
    for damaged in (objects[path][:-1], objects[path].replace(b"TMCP\1", b"TMCP\2", 1), objects[LATEST]):
        found = read_table({**objects, path: damaged})
        assert len(found.problems) == 1
        assert path in found.problems[0]
        assert found.files() == whole.files()


@on_virtual_time
async def test_void_entries_change_nothing_and_a_pointer_counts_for_its_body():
    """Another table's entry, one for another log, one of a decided instant; then one whose body has an earlier link."""
    store = Store(has_staging=True)
    await committed(store.backend)
    history = await CommitLog(store.backend, CommitSettings()).refresh()
    first = history.entry(1)
    late = replace(first, instant="20300101000000000", nonce="late", added=(replace(first.added[0], name="late"),))
    for void in ({"table": "another"}, {"previous": b"another"}, {}):
        entry = replace(history.linked(late if void else replace(late, instant=first.instant)), **void)
        await store.backend.put(log_path(history.head + 1), encode_entry(entry))
        history.apply(entry)
    pointer = encode_pointer(history.linked(late), "body")
    await store.backend.put(log_path(history.head + 1), pointer)
    await store.backend.put("body", encode_entry(replace(late, table="another", previous=b"another")))
    assert read_table(store.stored).files().keys() == {*(file.path for file in first.added), late.added[0].path}
    with mock.patch.object(second_reader, "problems_of_files", return_value=()):  # the late file is not there
        await agree(store.stored, store.backend)


@on_virtual_time
async def test_an_entry_of_an_instant_before_the_archive_s_floor_is_void(monkeypatch):
    monkeypatch.setattr(history_module, "UNSETTLED_COUNT", 1)
    store = Store(has_staging=True)
    short = CommitSettings(log_entry_count=2, timeline_commit_count=2)
    for _ in range(8):
        async with begin(table(store.backend, commit=short, views=ViewSettings(checkpoint_entries=1))) as job:
            await job.commit([await write_rows(job, store.backend)])
    assert log_path(1) not in store.stored
    history = await CommitLog(store.backend, CommitSettings(), start=Checkpoints(store.backend)).refresh()
    late = replace(await read_entry(store.backend, history.head), instant="20000101000000000", nonce="late")
    await store.backend.put(log_path(history.head + 1), encode_entry(history.linked(late)))
    assert "20000101000000000" not in read_table(store.stored).instants
    await agree(store.stored, store.backend)


async def two_commits() -> Store:
    store = Store(has_staging=False)
    await committed(store.backend)
    await committed(store.backend, "overwrite", {1: 1})
    await table(store.backend).checkpoint()
    return store
