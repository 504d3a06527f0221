"""Every store holds what it was given: the same rows, whichever it is."""

import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st

from tallymark.engine.views.block import pack_row, pack_rows, unpack_rows
from tallymark.engine.views.memory_store import ADDED_MAX, COPIED_BYTES_MAX, MemoryStore
from tallymark.engine.views.store import DamagedStore
from tallymark.engine.views.view import View
from tests.engine.timeline.entries import history_of
from tests.engine.views.histories import log_entries
from tests.engine.views.stores import MEMORY_BYTES, STORES, Change, Model, check_all, opened, row
from tests.engine.views.test_view import check_answers_as_the_log_does
from tests.support.examples import examples

every_store = pytest.mark.parametrize("kind", STORES)


@every_store
@settings(max_examples=examples(60))
@given(random=st.randoms(use_true_random=False))
def test_after_any_changes_a_store_holds_what_a_dict_of_dicts_does(kind, random):
    model = Model()
    with opened(kind) as store:
        for number in range(1, 1 + random.randint(1, 25)):
            Change(random, model, number).apply(store)
            assert store.statistics().partitions == len(model.held)
            assert store.statistics().memory_bytes <= MEMORY_BYTES.get(kind, 1 << 24)
        check_all(store, model)


@every_store
@settings(max_examples=examples(30))
@given(entries=log_entries(), data=st.data())
def test_a_view_on_any_store_answers_at_every_position_as_the_log_does(kind, entries, data):
    history = history_of(())
    with opened(kind) as store:
        view = View(store, keep_positions=data.draw(st.none() | st.integers(0, 10)))
        for entry in entries:
            history.apply(entry)
            if data.draw(st.booleans()):
                view.sync(history)
        view.sync(history)
        trio.run(check_answers_as_the_log_does, view, history)
        assert view.statistics().rebuilt == 0


@every_store
@pytest.mark.parametrize("names", [["absent"], ["first", "absent"], ["gone"]])
def test_the_removal_of_a_file_that_is_not_there_is_told_at_once_or_by_the_next_to_read(kind, names):
    with opened(kind) as store:
        store.load("month=1", pack_rows([row("first"), row("gone", removed_at=3)]))
        if store.remove("month=1", names, 5):
            with pytest.raises(DamagedStore, match=rf"{names[-1]}.*not there") as damage:
                store.rows("month=1")
            assert damage.value.partitions == frozenset({"month=1"})
            assert not store.contains("month=1")


@every_store
def test_a_store_is_closed_twice_and_leaves_nothing(kind, tmp_path):
    with opened(kind, tmp_path) as store:
        store.load("month=1", pack_rows([row("first")]))
        store.close()
        assert not list(tmp_path.iterdir())
        store.close()


@pytest.mark.parametrize("count", [0, COPIED_BYTES_MAX // 1000], ids=["small", "large"])
def test_rows_in_memory_stay_in_their_order_and_are_counted_whether_or_not_anybody_asks(count):
    rows = [row(f"first{number}{'x' * 1000}") for number in range(count)]
    store = MemoryStore()
    store.load("month=1", pack_rows(rows))
    for number in range(3 * ADDED_MAX):
        rows.append(row(f"{number}"))
        store.add("month=1", pack_row(rows[-1]))
        assert store.size("month=1") == store.memory_bytes == len(pack_rows(rows))
    block = store.rows("month=1")
    assert block is not None
    assert list(unpack_rows(block, "month=1")) == rows
    assert store.rows("month=1") is block
    store.add("month=1", pack_row(rows[0]))
    store.forget(["month=1"])
    assert (store.rows("month=1"), store.contains("month=1"), store.memory_bytes) == (None, False, 0)
