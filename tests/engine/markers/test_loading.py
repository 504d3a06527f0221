"""Reading what earlier servers of an instant left."""

from collections import deque
from collections.abc import Sequence
from itertools import combinations_with_replacement, count

import anyio
import pytest

from tallymark.backends.memory import MemoryBackend
from tallymark.engine.markers.loading import LoadedMarkers, load_markers
from tallymark.engine.markers.name import MarkerName
from tallymark.engine.markers.segment import FIRST_INCARNATION, claim_name, segment_name
from tests.engine.markers.recorded import FOLDER
from tests.support.faulty import FaultyBackend, slow
from tests.support.loops import on_virtual_time
from tests.support.paged import PagedBackend


async def load(storage, concurrency: int = 2):
    return await load_markers(storage, FOLDER, concurrency=concurrency)


def line(path: str) -> bytes:
    return f"{path}.marker.CREATE\n".encode()


@on_virtual_time
async def test_segments_direct_markers_and_claims_are_told_from_other_files():
    storage = MemoryBackend()
    for number in range(5):
        await storage.put(f"{FOLDER}/MARKERS{number}", line(f"{number}"))
    await storage.put(f"{FOLDER}/SERVER3", b"nonce")
    await storage.put(f"{FOLDER}/p=1/direct.marker.MERGE", b"")
    await storage.put(f"{FOLDER}/MARKERS.type", b"anything")
    await storage.put(f"{FOLDER}/MARKERS9.tmp", b"\xff\xff\n")
    await storage.put(f"{FOLDER}/staged/x.parquet.tmp", b"rows")
    await storage.put(f"{FOLDER}/p=1/x.marker.UNKNOWN", b"")
    await storage.put(f"{FOLDER}0/MARKERS0", line("of another instant"))
    loaded = await load(storage)
    assert loaded.names == {MarkerName(str(number)) for number in range(5)} | {MarkerName("p=1/direct", "MERGE")}
    assert loaded.object_count == 8


@pytest.mark.parametrize(
    ("name", "following"),
    [
        ("MARKERS19", FIRST_INCARNATION),
        ("SERVER3", FIRST_INCARNATION),
        (claim_name(FIRST_INCARNATION), FIRST_INCARNATION + 1),
        (segment_name(FIRST_INCARNATION + 6, 5), FIRST_INCARNATION + 7),
    ],
)
@on_virtual_time
async def test_the_next_incarnation_is_above_all_that_are_found_and_gives_numbers_of_ten_digits(name, following):
    storage = MemoryBackend()
    await storage.put(f"{FOLDER}/{name}", line("a"))
    assert (await load(storage)).next_incarnation == following


@on_virtual_time
async def test_staged_files_that_come_and_go_do_not_keep_a_loader_busy():
    storage, listings = PagedBackend(page_size=100), count()

    async def stage() -> None:
        await storage.put(f"{FOLDER}/staged/{next(listings)}.parquet.tmp", b"")

    storage.before_page = stage
    await storage.put(f"{FOLDER}/MARKERS0", line("a"))
    assert (await load(storage)).names == {MarkerName("a")}
    assert next(listings) == 2


@on_virtual_time
async def test_segments_are_read_once_each_and_many_at_a_time():
    storage = FaultyBackend(MemoryBackend(), slow("get", 1.0))
    for number in range(100):
        await storage.put(f"{FOLDER}/{segment_name(FIRST_INCARNATION, number)}", line(f"{number}"))
    began = anyio.current_time()
    loaded = await load(storage, concurrency=32)
    assert len(loaded.names) == len(loaded.paths) == 100
    assert anyio.current_time() - began == 4.0


@pytest.mark.no_cover
@pytest.mark.parametrize("page_size", [1, 2])
@pytest.mark.parametrize(
    ("left_by", "merged_by", "deceived"),
    [(0, 0, True), (0, FIRST_INCARNATION, False), (FIRST_INCARNATION, FIRST_INCARNATION, False)],
)
@on_virtual_time
async def test_two_merges_at_any_moments_of_a_paged_listing_deceive_no_loader_where_names_sort_as_numbers(
    left_by, merged_by, deceived, page_size
):
    """Numbers from 0 on, as earlier releases gave them, do not sort: decision 0011."""
    moments = combinations_with_replacement(range(9), 4)
    lost = [
        at for at in moments if MarkerName("x") not in await _loaded_beside_merges(left_by, merged_by, page_size, at)
    ]
    assert bool(lost) == deceived


async def _loaded_beside_merges(
    left_by: int, merged_by: int, page_size: int, moments: Sequence[int]
) -> set[MarkerName]:
    """What is loaded while x moves from segment 9 to 20 and on to 100, each put and each delete before that page."""
    left, first, second = segment_name(left_by, 9), segment_name(merged_by, 20), segment_name(merged_by, 100)
    merges = deque(zip(moments, (("put", first), ("delete", left), ("put", second), ("delete", first)), strict=True))
    page = 0
    storage = PagedBackend(page_size)

    async def merge() -> None:
        nonlocal page
        while merges and merges[0][0] <= page:
            _, (act, name) = merges.popleft()
            if act == "put":
                await storage.put_new(f"{FOLDER}/{name}", line("x"))
            else:
                await storage.delete([f"{FOLDER}/{name}"])
        page += 1

    await storage.put(f"{FOLDER}/{claim_name(left_by)}", b"nonce")
    for sequence, name in ((5, "a"), (6, "b"), (9, "x"), (15, "c"), (16, "d")):
        await storage.put_new(f"{FOLDER}/{segment_name(left_by, sequence)}", line(name))
    storage.before_page = merge
    loaded: LoadedMarkers = await load(storage)
    return loaded.names
