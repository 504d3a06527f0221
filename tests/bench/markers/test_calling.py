import pytest

from tallymark.bench.markers.calling import Calling, closed_loop, open_loop, so_many


def called(calling, *answers):
    """The connection's life: each answer comes so long after its question, and questions go out once they are due."""
    now = 0.0
    calling.begin(now)
    for took_s in answers:
        now = max(now, calling.due)
        calling.asked()
        now += took_s
        calling.heard(now)
    return calling.latency_s


def test_a_late_answer_makes_those_after_it_late_too_and_each_counts_from_when_it_was_due():
    calling = Calling(open_loop(iter([1.0, 1.25, 2.0])), count_from=0.0)
    assert called(calling, 0.5, 0.125, 0.125) == [0.5, 0.375, 0.125]
    assert (calling.due, calling.answered) == (None, 3)


def test_what_was_due_in_the_warm_up_is_asked_and_not_counted():
    calling = Calling(open_loop(iter([0.5, 2.0])), count_from=1.0)
    assert called(calling, 0.25, 0.125) == [0.125]
    assert calling.answered == 2


def test_a_closed_loop_asks_again_with_each_answer_until_its_time_is_over():
    calling = Calling(closed_loop(until=1.0), count_from=0.0)
    assert called(calling, 0.25, 0.5, 0.5) == [0.25, 0.5, 0.5]
    assert calling.due is None


@pytest.mark.parametrize("count", [0, 1, 3])
def test_so_many_markers_are_asked_for_and_no_more(count):
    calling = Calling(so_many(count), count_from=0.0)
    assert called(calling, *[0.25] * count) == [0.25] * count
    assert calling.due is None
