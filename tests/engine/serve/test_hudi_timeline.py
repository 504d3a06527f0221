"""The state of instants on Hudi's timelines, by the names that Hudi's versions use."""

import pytest

from tallymark.backends.memory import MemoryBackend
from tallymark.engine.errors import CorruptObject, InvalidRequest
from tallymark.engine.serve.hudi_timeline import HudiState, hudi_state
from tests.engine.serve.hudi_table import INSTANT, OTHER, put_state, put_table
from tests.support.loops import on_both_loops

PENDING = [
    ("commit", ["commit.requested"], HudiState.REQUESTED),
    ("commit", ["commit.requested", "inflight"], HudiState.INFLIGHT),
    ("deltacommit", ["deltacommit.requested", "deltacommit.inflight"], HudiState.INFLIGHT),
    ("clustering", ["clustering.requested"], HudiState.REQUESTED),
    ("clustering", ["clustering.requested", "clustering.inflight"], HudiState.INFLIGHT),
    ("compaction", ["compaction.requested", "compaction.inflight"], HudiState.INFLIGHT),
    ("logcompaction", ["logcompaction.requested", "logcompaction.inflight"], HudiState.INFLIGHT),
    ("replacecommit", ["replacecommit.requested", "replacecommit.inflight"], HudiState.INFLIGHT),
    ("clean", ["clean.requested", "clean.inflight"], HudiState.OVER),
]


@pytest.mark.parametrize("version", [6, 9])
@pytest.mark.parametrize(("action", "endings", "state"), PENDING)
@on_both_loops
async def test_a_pending_instant_is_as_its_newest_file_says(version, action, endings, state):
    storage = MemoryBackend()
    await put_table(storage, version)
    folder = ".hoodie" if version == 6 else ".hoodie/timeline"
    for ending in endings:
        await storage.put(f"{folder}/{INSTANT}.{ending}", b"")
    assert await hudi_state(storage, INSTANT) is state
    assert await hudi_state(storage, OTHER) is HudiState.OVER


@pytest.mark.parametrize("version", [6, 9])
@pytest.mark.parametrize(
    ("pending", "completed"),
    [
        ("commit", "commit"),
        ("deltacommit", "deltacommit"),
        ("replacecommit", "replacecommit"),
        ("compaction", "commit"),
        ("clustering", "replacecommit"),
        ("logcompaction", "deltacommit"),
    ],
)
@on_both_loops
async def test_a_completed_instant_is_over_though_its_earlier_files_remain(version, pending, completed):
    storage = MemoryBackend()
    await put_table(storage, version)
    await put_state(storage, version, "completed", pending=pending, completed=completed)
    assert await hudi_state(storage, INSTANT) is HudiState.OVER


@on_both_loops
async def test_another_folder_of_the_timeline_is_found_by_the_properties():
    storage = MemoryBackend()
    await put_table(storage, 9, folder="events")
    await storage.put(f".hoodie/events/{INSTANT}.inflight", b"")
    assert await hudi_state(storage, INSTANT) is HudiState.INFLIGHT


@on_both_loops
async def test_what_is_no_table_or_a_damaged_one_is_said():
    storage = MemoryBackend()
    with pytest.raises(InvalidRequest, match=r"has no \.hoodie/hoodie\.properties: no Hudi table is there"):
        await hudi_state(storage, INSTANT)
    await storage.put(".hoodie/hoodie.properties", b"a=\\u12")
    with pytest.raises(CorruptObject, match=r"hoodie\.properties"):
        await hudi_state(storage, INSTANT)
