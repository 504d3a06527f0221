"""Local files that somebody cuts off, overwrites or deletes under a store: it says so, or the answers are right."""

import contextlib
import os
import shutil
import tempfile
from functools import partial
from pathlib import Path
from random import Random

import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st

from tallymark.engine.views.block import cut_rows, mark_removed, pack_row, pack_rows
from tallymark.engine.views.key_value_store import KeyValueStore, Rocks
from tallymark.engine.views.spillable_store import SpillableStore
from tallymark.engine.views.store import DamagedStore, ViewStore
from tallymark.engine.views.view import View
from tests.engine.timeline.entries import history_of
from tests.engine.views.histories import log_entries
from tests.engine.views.stores import ON_DISK, Change, Model, check_all, opened, row
from tests.engine.views.test_view import check_answers_as_the_log_does
from tests.support.examples import examples

HARMS = ("cut", "cut to nothing", "overwrite", "turn a bit", "delete", "delete the folder")

spillable = pytest.mark.parametrize("kind", ON_DISK[:3])
every_store_on_disk = pytest.mark.parametrize("kind", ON_DISK)


def files_of(folder: Path) -> list[Path]:
    """Those of a store: not its lock, and no log that nobody reads."""
    names = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return [path for path in names if path.name not in ("owner.lock", "LOCK", "LOG")]


def flush(store: ViewStore) -> None:
    """Let what a store would write later be on disk now. Raises DamagedStore, as a call about partition '' would."""
    if isinstance(store, SpillableStore):
        with store._whole_or_forgotten(""):
            store._file.flush()
    if isinstance(store, KeyValueStore):
        rocks = store._journals._pieces
        assert isinstance(rocks, Rocks)
        if rocks._database is not None:
            with contextlib.suppress(Exception):  # it may be broken already
                rocks._database.flush()
                rocks._database.compact_range(None, None)  # and let it do no more by itself


def harm(folder: Path, random: Random) -> None:
    """To one of a store's files; some may go meanwhile, by the store's own hand."""
    with contextlib.suppress(FileNotFoundError):
        path = random.choice(files_of(folder) or [folder / "none"])
        size = path.stat().st_size
        where = random.randrange(max(1, size))
        match random.choice(HARMS):
            case "cut":
                os.truncate(path, where)
            case "cut to nothing":
                os.truncate(path, 0)
            case "overwrite" | "turn a bit" as how:
                with path.open("r+b") as file:
                    file.seek(where)
                    turned = bytes([(file.read(1) or b"?")[0] ^ 16])
                    file.seek(where)
                    file.write(turned if how == "turn a bit" else random.randbytes(random.randint(1, 9000)))
            case "delete":
                path.unlink()
            case _:
                shutil.rmtree(path.parent, ignore_errors=True)


@pytest.mark.parametrize(
    ("kind", "seed"), [(kind, seed) for kind in ON_DISK for seed in range(10 if kind == "key-value" else 40)]
)
def test_after_any_harm_an_answer_is_right_or_refused(kind, seed, tmp_path):
    model, random = Model(), Random(seed)
    with opened(kind, tmp_path) as store:
        for number in range(1, 1 + random.randint(1, 40)):
            if random.random() < 0.2:
                try:
                    flush(store)
                except DamagedStore as damage:
                    model.lose(damage)
                harm(tmp_path, random)
            with contextlib.suppress(DamagedStore):
                Change(random, model, number).apply(store)
        for _ in range(20):
            try:
                check_all(store, model)
                break
            except DamagedStore as damage:
                model.lose(damage)
                store.forget(damage.partitions)
        else:
            pytest.fail("the store did not start again")


NAMES = [f"f{number}-{Random(number).randbytes(50).hex()}" for number in range(1000)]
BLOCK = pack_rows([row(name, "") for name in NAMES])
COUNT = 40
"""Blocks of 150 kB: more than any database keeps in memory here."""


def filled(store: ViewStore) -> ViewStore:
    for number in range(COUNT):
        store.load(f"month={number}", BLOCK)
    flush(store)
    return store


LATER = [f"later{number}-{Random(number).randbytes(50).hex()}" for number in range(3)]


def changed(store: ViewStore) -> bytes:
    """A few files more in each partition, and one less: nothing but that is written. Returns the rows."""
    right = bytearray(BLOCK)
    mark_removed(right, NAMES[7], 9)
    for name in LATER:
        for number in range(COUNT):
            store.add(f"month={number}", pack_row(row(name, "")))
        right += pack_row(row(name, ""))
    for number in range(COUNT):
        assert store.remove(f"month={number}", [NAMES[7]], 9)
    flush(store)
    return bytes(right)


def wrong_answers_refused(store: ViewStore, right: bytes) -> int:
    """How many partitions the store owns to have lost; what else it answers has to be right."""
    lost: set[str] = set()
    for number in range(COUNT):
        partition = f"month={number}"
        try:
            block = store.rows(partition)
            assert block is None or set(cut_rows(block)) == set(cut_rows(right))
            assert (block is None) == (partition in lost)
        except DamagedStore as damage:
            lost |= damage.partitions or set()
            if partition not in lost:
                pytest.fail("what was asked for is not among what is lost")
    return len(lost)


def overwrite(path: Path, size: int) -> None:
    with path.open("r+b") as file:
        for at in range(20_000, path.stat().st_size, 4_000 + size):
            file.seek(at)
            file.write(b"?" * size)


def cut_off(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


@pytest.fixture
def store(kind, tmp_path):
    with opened(kind, tmp_path) as store:
        yield filled(store)


@every_store_on_disk
@pytest.mark.parametrize("done", [partial(overwrite, size=1), partial(overwrite, size=50_000), cut_off])
@pytest.mark.parametrize("is_changed", [False, True])
def test_rows_that_were_overwritten_or_cut_off_on_disk_are_refused(store, done, is_changed, tmp_path):
    right = changed(store) if is_changed else BLOCK
    for path in files_of(tmp_path):
        done(path)
    assert wrong_answers_refused(store, right) > 1


@spillable
def test_an_older_state_of_the_file_is_refused(store, tmp_path):
    (path,) = files_of(tmp_path)
    before = path.read_bytes()
    right = changed(store)
    path.write_bytes(before)
    assert wrong_answers_refused(store, right) > 1


@spillable
@pytest.mark.parametrize("name", [*LATER, NAMES[7]])
def test_what_came_to_a_partition_on_disk_and_was_overwritten_there_is_refused(store, name, tmp_path):
    right = changed(store)
    assert sum(overwritten(path, name) for path in files_of(tmp_path)) >= COUNT
    assert wrong_answers_refused(store, right) > 1


def overwritten(path: Path, name: str) -> int:
    """Put another name of that length in its place, wherever it stands."""
    data, wanted = path.read_bytes(), name.encode()
    path.write_bytes(data.replace(wanted, b"X" + wanted[1:]))
    return data.count(wanted)


@spillable
def test_a_file_that_was_deleted_or_replaced_is_no_more_read(store, tmp_path):
    (path,) = files_of(tmp_path)
    path.rename(path.with_name("elsewhere"))
    shutil.copy(path.with_name("elsewhere"), path)
    with pytest.raises(DamagedStore, match="was replaced"):
        store.rows("month=0")
    filled(store)
    (path,) = files_of(tmp_path)
    path.unlink()
    with pytest.raises(DamagedStore, match="No such file"):
        store.rows("month=0")
    filled(store)
    assert store.rows("month=0") == BLOCK


def test_a_block_in_memory_is_written_again_though_it_was_read_from_the_file_that_is_lost(tmp_path):
    with opened("spillable", tmp_path) as store:
        one = pack_rows([row("f" * 450)])
        for partition in ("month=1", "month=2"):
            store.load(partition, one)
        assert store.rows("month=1") == one  # now in memory and in the file, and the other in the file alone
        (path,) = files_of(tmp_path)
        path.unlink()
        with pytest.raises(DamagedStore) as damage:
            store.rows("month=2")
        assert damage.value.partitions == frozenset({"month=2"})
        store.load("month=3", one)
        assert store.rows("month=1") == one
        assert set(store.partitions()) == {"month=1", "month=3"}


@every_store_on_disk
@settings(max_examples=examples(10))
@given(entries=log_entries(), seed=st.integers(0, 1000))
def test_a_view_answers_as_the_log_does_whatever_is_done_to_its_store(kind, entries, seed):
    history, random = history_of(()), Random(seed)
    with tempfile.TemporaryDirectory() as folder, opened(kind, Path(folder)) as store:
        view = View(store)
        for entry in entries:
            history.apply(entry)
            view.sync(history)
            if random.random() < 0.5:
                try:
                    flush(store)
                except DamagedStore as damage:
                    view._rebuild(damage)
                harm(Path(folder), random)
        trio.run(check_answers_as_the_log_does, view, history)
