from itertools import count

import pytest

from tallymark.engine.errors import Sealed, ServiceUnavailable
from tallymark.engine.tasks.marker_prefetch import MarkersAhead
from tests.engine.tasks.scene import Markers


def ahead(markers, *, wait_s=60.0, monotonic=lambda: 0.0):
    numbers = count()
    return MarkersAhead(markers, lambda: f"f{next(numbers)}", wait_s=wait_s, monotonic=monotonic)


def test_all_new_partitions_are_asked_in_one_request():
    markers = Markers()
    ahead(markers).request(["a=1", "a=2", ""])
    assert markers.requests == [("a=1/f0", "a=2/f1", "f2")]


def test_a_partition_with_a_name_in_hand_is_not_asked_again():
    markers = Markers()
    names = ahead(markers)
    names.request(["a=1"])
    names.request(["a=1", "a=2"])
    names.request(["a=1"])
    assert markers.requests == [("a=1/f0",), ("a=2/f1",)]


def test_a_taken_name_is_gone_and_the_rest_is_unused():
    names = ahead(Markers())
    names.request(["a=1", "a=2"])
    assert names.take("a=2") == "f1"
    assert names.unused == ("a=1/f0",)


def test_a_name_not_asked_ahead_is_asked_when_taken():
    markers = Markers()
    assert ahead(markers).take("a=1") == "f0"
    assert markers.acked == {"a=1/f0"}


def test_only_standing_still_counts_as_waiting():
    markers = Markers(acks=False)
    moments = iter([10.0, 12.5])

    def monotonic():
        markers.ack_all()  # the ack comes after the clock was read first
        return next(moments)

    names = ahead(markers, monotonic=monotonic)
    names.request(["a=1"])
    assert names.take("a=1") == "f0"
    assert names.waited_s == 2.5
    markers.acks = True
    names.take("a=2")
    assert names.waited_s == 2.5


def test_an_ack_that_does_not_come_within_the_bound_is_an_error_that_names_the_file():
    names = ahead(Markers(acks=False), wait_s=0.001)
    with pytest.raises(ServiceUnavailable, match=r"marker of a=1/f0 was not acked within 0.001 s \(marker_wait_s\)"):
        names.take("a=1")
    assert names.unused == ("a=1/f0",)


def test_a_refusal_comes_through_when_the_name_is_taken():
    markers = Markers(acks=False)
    names = ahead(markers)
    names.request(["a=1"])
    markers.refuse_all(Sealed("over"))
    with pytest.raises(Sealed, match="over"):
        names.take("a=1")
