"""The hash of a log at a position."""

from hashlib import sha256

import msgpack
from hypothesis import given
from hypothesis import strategies as st

from tallymark.engine.timeline.history import History
from tests.engine.timeline.entries import commit, rollback


def history_of(*entries):
    history = History()
    for entry in entries:
        history.apply(entry)
    return history


def test_a_log_without_entries_has_the_hash_of_nothing():
    assert history_of().hash_at(0) == sha256(b"").hexdigest()


def test_each_entry_goes_into_the_hash_by_its_position_instant_kind_and_nonce():
    first, second = commit(1), rollback(2)
    expected = sha256(b"").digest()
    for position, entry in enumerate((first, second), 1):
        expected = sha256(expected + msgpack.packb([position, entry.instant, entry.kind, entry.nonce])).digest()
    assert history_of(first, second).hash_at(2) == expected.hex()


def test_the_order_of_entries_counts():
    assert history_of(commit(1), commit(2)).hash_at(2) != history_of(commit(2), commit(1)).hash_at(2)


def test_a_void_entry_counts_too():
    void = commit(1, nonce="again")
    assert history_of(commit(1), void).hash_at(2) != history_of(commit(1), commit(2)).hash_at(2)


@given(st.lists(st.sampled_from("abc"), max_size=6), st.lists(st.sampled_from("abc"), max_size=6))
def test_two_logs_agree_in_a_hash_just_as_far_as_they_have_the_same_entries(one, other):
    first = history_of(*(commit(number, nonce=nonce) for number, nonce in enumerate(one, 1)))
    second = history_of(*(commit(number, nonce=nonce) for number, nonce in enumerate(other, 1)))
    for position in range(min(first.head, second.head) + 1):
        assert (first.hash_at(position) == second.hash_at(position)) == (one[:position] == other[:position])


def test_what_comes_later_leaves_the_hash_of_an_earlier_position():
    history = history_of(commit(1))
    before = history.hash_at(1)
    history.apply(commit(2))
    assert history.hash_at(1) == before
