"""Which segments are merged, and what that costs. Bytes and objects are counted beside the plan."""

from itertools import count

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tallymark.engine.markers.merge import MergePlan
from tests.support.examples import examples


class Storage:
    """What a directory would hold and would have written, if it did as the plan says."""

    def __init__(self, plan: MergePlan) -> None:
        self.plan = plan
        self.objects: dict[str, int] = {}
        self.flushed_bytes = 0
        self.sent_bytes = 0
        self.wasted_bytes = 0
        self.flushes = 0
        self.merges = 0
        self.objects_max = 0
        self._names = map(str, count())

    def flush(self, size: int, *, copies: int = 1) -> None:
        path = next(self._names)
        self.objects[path] = size
        self.flushes += 1
        self.flushed_bytes += size
        self.sent_bytes += copies * size
        self.wasted_bytes += (copies - 1) * size
        self.plan.flushed(path, size)
        self.objects_max = max(self.objects_max, len(self.objects))

    def merge(self, *, lands: bool = True) -> int:
        """The objects that it freed."""
        run = self.plan.due(wasted=self.wasted_bytes)
        size = sum(self.objects[segment.path] for segment in run)
        self.sent_bytes += size
        if not run or not lands:
            self.wasted_bytes += size
            return 0
        for segment in run:
            del self.objects[segment.path]
        path = next(self._names)
        self.objects[path] = size
        self.plan.merged(run, path, size)
        self.merges += 1
        return len(run) - 1


def new_storage(count_max: int = 20, freed_min: int = 8, ratio_max: float = 4.0) -> Storage:
    return Storage(MergePlan(count_max=count_max, freed_min=freed_min, ratio_max=ratio_max))


PLANS = st.builds(
    new_storage,
    count_max=st.sampled_from([1, 3, 8]),
    freed_min=st.integers(1, 5),
    ratio_max=st.sampled_from([1.0, 1.5, 2.0, 4.0, 6.0]),
)


@given(
    storage=PLANS,
    steps=st.lists(st.tuples(st.integers(1, 1000), st.sampled_from(["well", "fails", "later"])), max_size=120),
)
@settings(max_examples=examples(150), deadline=None)
def test_no_byte_beyond_the_ratio_is_written_whatever_the_sizes_and_whatever_fails(storage, steps):
    ratio = storage.plan._ratio_max
    for size, merging in steps:
        storage.flush(size)
        if merging != "later":
            freed = storage.merge(lands=merging == "well")
            assert freed == 0 or freed >= storage.plan._freed_min
        assert storage.sent_bytes <= ratio * storage.flushed_bytes
        assert sum(storage.objects.values()) == storage.flushed_bytes
        assert [segment.path for segment in storage.plan.segments] == sorted(storage.objects, key=_age(storage))


def _age(storage: Storage):
    order = {segment.path: place for place, segment in enumerate(storage.plan.segments)}
    return order.__getitem__


@given(storage=PLANS, copies=st.lists(st.integers(1, 4), min_size=1, max_size=80))
@settings(max_examples=examples(50), deadline=None)
def test_a_merge_pays_for_repeated_puts_too(storage, copies):
    for number in copies:
        storage.flush(100, copies=number)
        before = storage.sent_bytes
        storage.merge()
        is_within = storage.sent_bytes <= storage.plan._ratio_max * storage.flushed_bytes
        assert storage.sent_bytes == before or is_within


@given(sizes=st.lists(st.sampled_from([60, 61, 600, 6000]), min_size=500, max_size=500), freed_min=st.integers(4, 20))
@settings(max_examples=examples(20), deadline=None)
def test_as_long_as_there_is_credit_few_objects_lie_there_whatever_the_sizes(sizes, freed_min):
    storage = new_storage(freed_min=freed_min)
    for size in sizes:
        storage.flush(size)
        storage.merge()
    room = 2.5 * (len(sizes) / freed_min) ** (1 / 3)
    assert storage.objects_max <= max(20, freed_min + room) + 1


@pytest.mark.parametrize(
    ("flushes", "objects", "ratio", "extra_puts"),
    [(1000, 21, 2.9, 0.074), (4000, 21, 3.8, 0.081), (8855, 34, 3.9, 0.075), (46_000, 53, 3.7, 0.06)],
)
def test_the_table_of_decision_0027_holds(flushes, objects, ratio, extra_puts):
    """The one of more than twenty is the segment that has just come, before the merge that it brings about."""
    storage = new_storage()
    for _ in range(flushes):
        storage.flush(60)
        storage.merge()
    assert storage.objects_max <= objects
    assert storage.merges <= extra_puts * flushes
    assert round(storage.sent_bytes / storage.flushed_bytes, 1) == ratio


class Watched(list):
    """Counts who is looked at."""

    looks = 0

    def __getitem__(self, key):
        self.looks += 1
        return super().__getitem__(key)

    def __iter__(self):
        self.looks += len(self)
        return super().__iter__()


@pytest.mark.parametrize("ratio_max", [1.0, 4.0])
def test_as_long_as_nothing_can_be_paid_a_flush_looks_at_no_segment_however_many_lie_there(ratio_max):
    plan = MergePlan(count_max=20, freed_min=16, ratio_max=ratio_max)
    for number in range(1000):
        plan.found(f"old{number}", 10_000)
    plan.segments = watched = Watched(plan.segments)
    for number in range(100):
        plan.flushed(f"new{number}", 1)
        assert plan.due(wasted=300) == ()
    assert len(watched) == 1100
    assert watched.looks == 0


def test_segments_of_earlier_servers_are_merged_once_the_flushes_can_pay_for_them():
    storage = new_storage(count_max=2, freed_min=1)
    for number in range(10):
        storage.plan.found(f"old{number}", 100)
        storage.objects[f"old{number}"] = 100
    for _ in range(5):
        storage.flush(10)
        storage.merge()
    assert len(storage.objects) > 10
    storage.flush(1000)
    storage.merge()
    assert len(storage.objects) == 1
    assert storage.sent_bytes <= 4 * storage.flushed_bytes


def test_what_another_server_has_merged_away_is_no_longer_counted():
    plan = MergePlan(count_max=1, freed_min=1, ratio_max=4.0)
    for path in "abcdefgh":
        plan.flushed(path, 10)
    assert len(plan.due()) == 8
    plan.dropped({"a", "b", "c", "d", "e", "f"})
    assert [segment.path for segment in plan.segments] == ["g", "h"]
    assert plan.due() == ()
