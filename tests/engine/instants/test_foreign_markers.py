"""Markers that name what is not a data file of their instant: refused on request, and never deleted."""

import msgpack
import pytest

from tallymark.engine.errors import InvalidRequest
from tallymark.engine.instants.fencing import fence_path, read_fences
from tallymark.engine.markers.segment import encode_segment, marker_folder
from tallymark.engine.settings import MarkerSettings
from tallymark.engine.tasks.file_name import new_file_name
from tests.engine.jobs.scene import Store, begin, committed, die, name_of, table, write_rows
from tests.support.faulty import FaultyBackend
from tests.table_invariants import data_files

ends = pytest.mark.parametrize("end", ["commit", "rollback"])
kinds = pytest.mark.parametrize("kind", ["batched", "direct"])


def foreign(store: Store) -> list[str]:
    """A committed file, the table's properties, its log, a stranger's file, and one of an instant to come."""
    later = f"month=1/{new_file_name(instant='20990101000000000', task=0, stage=0, attempt=0)}"
    return [
        *data_files(store.objects),
        ".hoodie/hoodie.properties",
        ".hoodie/.tallymark/log/00000000000000000001",
        "month=1/notes.txt",
        later,
    ]


async def test_the_service_refuses_a_name_that_is_not_of_its_instant(store):
    await committed(store.backend, months={1: 1})
    async with begin(store.backend, markers=MarkerSettings()) as job:
        for path in [*foreign(store), f".hoodie/{name_of(job)}"]:
            with pytest.raises(InvalidRequest, match="not a data file of instant"):
                await job._directory.create(path)
        await job.commit([await write_rows(job, store.backend)])


@kinds
@ends
async def test_no_end_of_an_instant_touches_what_its_markers_name_of_others(store, kind, end, caplog):
    await committed(store.backend, months={1: 1})
    kept = {path: data for path, data in store.objects.items() if path in foreign(store)}
    storage = FaultyBackend(store.backend)
    async with begin(storage, markers=MarkerSettings(kind=kind)) as job:
        report = await write_rows(job, storage)
        folder = marker_folder(job.instant)
        if kind == "direct" or end == "commit":  # a committing job reads its own service's markers from memory
            for path in foreign(store):
                await store.backend.put(f"{folder}/{path}.marker.CREATE", b"")
            await store.backend.put(f"{folder}/DIRECT", b"")
        else:
            lines = [f"{path}.marker.CREATE" for path in foreign(store)]
            await store.backend.put(f"{folder}/MARKERS2000000000", encode_segment(lines))
        if end == "commit":
            await job.commit([report])
        else:
            die(storage)
    if end == "rollback":
        await table(store.backend).rollback(job.instant)
    await table(store.backend).clean()
    assert {path: store.objects.get(path) for path in kept} == kept
    assert "files.foreign" in caplog.text


async def test_a_list_of_fences_yields_names_of_its_instant_alone(unstaged, caplog):
    await committed(unstaged.backend, months={1: 1})
    own = f"month=1/{new_file_name(instant='20261121030000000', task=0, stage=0, attempt=0)}"
    path = fence_path("20261121030000000", "n")
    await unstaged.backend.put(path, msgpack.packb([own, *foreign(unstaged)]))
    assert await read_fences(unstaged.backend, path) == [own]
    assert "files.foreign" in caplog.text
