"""A disk that takes no more of a view: a clear error in place of an answer, and never another answer."""

import os

import pytest

from tallymark.engine.views.block import cut_rows, pack_rows
from tallymark.engine.views.store import FullStore
from tallymark.engine.views.view import View
from tests.engine.timeline.entries import commit, data_file, history_of
from tests.engine.views.stores import opened, row
from tests.support.loops import on_both_loops
from tests.support.mounted import mounted

PARTITIONS = [f"month={number}" for number in range(60)]


@pytest.fixture
def disk(tmp_path):
    with mounted(tmp_path / "disk", "size=4m") as folder:
        yield folder


@pytest.fixture(params=["spillable, none in memory", "key-value"])
def store(request, disk):
    with opened(request.param, disk) as store:
        yield store


def block(seed: int) -> bytes:
    """200 kB that no compression makes much smaller."""
    return pack_rows([row(f"f{seed}x{number}-{os.urandom(50).hex()}", "") for number in range(1400)])


def load_all(store, held: dict[str, bytes]) -> None:
    for partition in PARTITIONS:
        load(store, held, partition)


def load(store, held: dict[str, bytes], partition: str) -> None:
    """Into both; what a full store does not hold is not held. Raises FullStore."""
    rows = block(len(held))
    try:
        store.load(partition, rows)
        held[partition] = rows
    except FullStore as full:
        forget(store, held, full)
        raise


def forget(store, held: dict[str, bytes], full: FullStore) -> None:
    for partition in list(held) if full.partitions is None else full.partitions:
        held.pop(partition, None)
    store.forget(full.partitions)


def check(store, held: dict[str, bytes]) -> None:
    assert set(store.partitions()) == set(held)
    for partition, rows in held.items():
        assert set(cut_rows(store.rows(partition))) == set(cut_rows(rows))


@pytest.mark.parametrize("taken", [0, 3_000_000])
def test_a_store_whose_disk_is_full_says_where_and_what_to_do_and_holds_what_it_held_and_later_more(store, disk, taken):
    held: dict[str, bytes] = {}
    ballast = disk / "ballast"
    ballast.write_bytes(b"x" * taken)
    with pytest.raises(FullStore, match=rf"{disk}.*takes no more.*Free space there.*ViewSettings\(folder"):
        load_all(store, held)
    check(store, held)
    ballast.unlink()
    if taken:
        for partition in PARTITIONS[:8]:
            load(store, held, partition)
        check(store, held)


def test_blocks_in_memory_outlast_a_disk_without_any_room(disk):
    (disk / "ballast").write_bytes(b"x" * (4 << 20))
    with opened("spillable", disk) as store:
        small = pack_rows([row(f"f{number}") for number in range(10)])
        store.load("month=1", small)
        with pytest.raises(FullStore) as full:
            store.load("month=2", small)
        assert full.value.partitions == frozenset({"month=2"})
        assert store.rows("month=1") == small
        assert store.rows("month=2") is None


@pytest.mark.no_cover
def test_what_comes_to_a_partition_on_a_full_disk_is_held_or_the_partition_is_not(store):
    held: dict[str, bytes] = {}
    for partition in PARTITIONS[:8]:
        load(store, held, partition)
    refused = 0
    for number in range(40_000):
        partition = PARTITIONS[number % 8]
        new = pack_rows([row(f"later{number}-{os.urandom(200).hex()}", "")])
        try:
            if partition in held:
                store.add(partition, new)
                held[partition] += new
        except FullStore as full:
            forget(store, held, full)
            refused += 1
        if refused == 4:
            break
    assert refused
    check(store, held)


@on_both_loops
async def test_a_view_follows_the_log_all_the_same_and_answers_once_there_is_room(store, disk):
    many = tuple(data_file("month=1", number, f"f{os.urandom(100).hex()}x") for number in range(5_000))
    later = data_file("month=1", 5_001)
    history, view = history_of(()), View(store)
    ballast = disk / "ballast"
    ballast.write_bytes(b"x" * (4 << 20))
    for position, added in enumerate((many, (later,)), start=1):
        history.apply(commit(position, added=added))
        view.sync(history)
        with pytest.raises(FullStore, match=rf"{disk}"):
            await view.at(position).files("month=1")
    ballast.unlink()
    assert set(await view.at(1).files("month=1")) == set(many)
    assert set(await view.at(2).files("month=1")) == {*many, later}
