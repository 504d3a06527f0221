"""Blocks that tasks of a process share."""

from hypothesis import given
from hypothesis import strategies as st

from tallymark.engine.lookups.cache import BlockCache

LOG = ("file:///flights", 7, "hash")
names = st.sampled_from("abcd")


def test_what_was_kept_is_found_at_its_own_position_and_log_alone():
    cache = BlockCache()
    cache.keep(LOG, {"a": b"of a", "b": b""}, limit_bytes=10_000)
    assert cache.found(LOG, ["a", "b", "c"]) == {"a": b"of a", "b": b""}
    for other in (("file:///cabs", 7, "hash"), ("file:///flights", 8, "hash"), ("file:///flights", 7, "other")):
        assert cache.found(other, ["a", "b"]) == {}


def test_what_was_asked_for_longest_ago_goes_first_and_nothing_goes_for_a_block_beyond_the_limit():
    cache = BlockCache()
    for name in "abc":
        cache.keep(LOG, {name: bytes(1000)}, limit_bytes=4000)
    cache.found(LOG, ["a"])
    cache.keep(LOG, {"d": bytes(1000)}, limit_bytes=4000)
    cache.keep(LOG, {"e": bytes(4000)}, limit_bytes=4000)
    assert sorted(cache.found(LOG, "abcde")) == ["a", "c", "d"]


@given(st.lists(st.tuples(names, st.integers(0, 500)), max_size=30), st.integers(0, 2000))
def test_the_bound_holds_always_and_what_is_found_is_what_was_kept_last(kept, limit_bytes):
    cache, last = BlockCache(), dict[str, bytes]()
    for number, (name, size) in enumerate(kept):
        last[name] = bytes([number]) * size
        cache.keep(LOG, {name: last[name]}, limit_bytes=limit_bytes)
        assert cache.bytes <= limit_bytes
        assert cache.bytes >= sum(map(len, cache.found(LOG, "abcd").values()))
    assert cache.found(LOG, "abcd").items() <= last.items()
