import pytest
from hypothesis import given
from hypothesis import strategies as st

from tallymark.engine.errors import FlushFailed, InvalidRequest, Overloaded, ServiceOverloaded, ServiceUnavailable
from tallymark.engine.rpc.messages import (
    Ack,
    Blocks,
    Commit,
    Committed,
    CreateMarkers,
    LookUp,
    Piece,
    Refusal,
    Request,
)
from tallymark.engine.rpc.pending_requests import (
    AnyPending,
    PendingCommit,
    PendingLookUp,
    PendingMarkers,
    PendingRequests,
)

SIZE = 2000


def ask(*paths: str, deadline: float = 60.0) -> PendingMarkers:
    return PendingMarkers(paths, deadline)


def look_up(*partitions: str, deadline: float = 60.0) -> PendingLookUp:
    return PendingLookUp(partitions, deadline, position=7, log_hash="hash")


def commit(entry: bytes = b"entry", deadline: float = 60.0) -> PendingCommit:
    return PendingCommit((), deadline, commit=Commit(0, 7, "hash", entry))


def pending(*asks: AnyPending) -> PendingRequests:
    made = PendingRequests(jitter=lambda: 0.5)
    for each in asks:
        made.add(each)
    return made


def sent(*asks: AnyPending) -> PendingRequests:
    """At second 0, in messages of ids from 1 on."""
    made = pending(*asks)
    made.due_messages(0.0, SIZE)
    return made


def expire(requests: PendingRequests, now: float) -> None:
    requests.expire(now, lambda _: ServiceUnavailable("late"))


def test_an_ask_has_its_result_with_its_ack_and_not_before() -> None:
    one = ask("a", "b")
    requests = pending(one)
    assert requests.due_messages(0.0, SIZE) == [CreateMarkers(1, ("a", "b"), "CREATE")]
    assert not one.future.done()
    assert not one.future.cancel()
    assert requests.due_messages(50.0, SIZE) == [], "once while the connection stands"
    requests.receive(Ack(1), 51.0)
    assert one.future.result(0) is None
    assert requests.is_idle


def test_a_refused_part_fails_the_ask_and_its_other_parts_are_forgotten() -> None:
    one = ask(*(f"{n:0500}" for n in range(3)))
    requests = pending(one)
    first, second, third = requests.due_messages(0.0, 600)
    requests.receive(Refusal(second.id, FlushFailed("storage")), 1.0)
    with pytest.raises(FlushFailed, match="storage"):
        one.future.result(0)
    requests.receive(Ack(first.id), 1.0)
    requests.lost("reset")
    assert requests.due_messages(2.0, 600) == []
    requests.receive(Ack(third.id), 2.0)
    assert requests.is_idle


def test_overloaded_is_asked_again_after_its_pause_and_does_not_spin_without_one() -> None:
    requests = sent(ask("a"))
    requests.receive(Refusal(1, Overloaded("queue is full", retry_after_s=2.0)), 10.0)
    assert requests.seconds_to_next(10.0) == 2.0
    assert requests.due_messages(11.9, SIZE) == []
    assert requests.due_messages(12.0, SIZE) == [CreateMarkers(2, ("a",), "CREATE")]
    assert "queue is full" in requests.problem
    requests.receive(Refusal(2, Overloaded("full", retry_after_s=0.0)), 20.0)
    assert (requests.seconds_to_next(20.0) or 0.0) > 0


@pytest.mark.parametrize("is_lost", [False, True])
def test_an_ask_that_is_put_off_to_the_end_fails_as_such_unless_the_service_has_gone_since(is_lost: bool) -> None:
    put_off = ask("a", deadline=20.0)
    requests = sent(put_off)
    requests.receive(Refusal(1, Overloaded("full", retry_after_s=100.0)), 10.0)
    if is_lost:
        requests.lost("reset")
    expire(requests, 20.0)
    assert isinstance(put_off.future.exception(0), ServiceOverloaded) is not is_lost
    assert str(put_off.future.exception(0)) == "late"


def test_an_ask_fails_at_its_deadline_and_a_later_answer_is_ignored() -> None:
    early, late = ask("a", deadline=5.0), ask("b", deadline=6.0)
    requests = pending(early)
    assert requests.seconds_to_next(1.0) == 0.0
    assert requests.seconds_to_deadline(1.0) == 4.0
    requests.add(late)
    requests.due_messages(1.0, SIZE)
    assert requests.seconds_to_next(1.0) == 4.0
    expire(requests, 4.9)
    assert not early.future.done()
    expire(requests, 5.0)
    with pytest.raises(ServiceUnavailable):
        early.future.result(0)
    requests.receive(Ack(1), 5.5)
    assert not late.future.done()


def test_an_expired_ask_is_not_sent() -> None:
    requests = pending(ask("a", deadline=5.0))
    expire(requests, 5.0)
    assert requests.due_messages(5.0, SIZE) == []
    assert requests.seconds_to_next(5.0) is None


def test_a_path_that_fits_no_frame_fails_its_own_ask_only() -> None:
    long, short = ask("a" * 3000, "b"), ask("c")
    requests = pending(long, short)
    assert requests.due_messages(0.0, SIZE) == [CreateMarkers(1, ("c",), "CREATE")]
    with pytest.raises(InvalidRequest, match="frame_bytes"):
        long.future.result(0)


def test_a_look_up_has_its_blocks_when_the_last_of_them_is_whole() -> None:
    one = look_up("a", "b")
    requests = pending(one)
    assert requests.due_messages(0.0, SIZE) == [LookUp(1, 7, "hash", ("a", "b"))]
    for pieces in ((Piece(1, b"A"), Piece(3, b"B")), (Piece(3, b"B"),), (Piece(3, b"B"),)):
        assert not one.future.done()
        requests.receive(Blocks(1, pieces), 1.0)
    assert one.future.result(0) == {"a": b"A", "b": b"BBB"}
    assert requests.is_idle


def test_a_look_up_of_more_partitions_than_a_request_takes_has_the_blocks_of_all() -> None:
    names = [f"{n:0500}" for n in range(4)]
    one = look_up(*names)
    requests = pending(one)
    parts = requests.due_messages(0.0, 600)
    assert len(parts) == 4
    for number, part in enumerate(parts):
        requests.receive(Blocks(part.id, (Piece(1, bytes([number])),)), 1.0)
    assert one.future.result(0) == {name: bytes([number]) for number, name in enumerate(names)}


def test_a_look_up_that_was_answered_in_part_before_a_loss_begins_anew() -> None:
    one = look_up("a", "b")
    requests = sent(one)
    requests.receive(Blocks(1, (Piece(1, b"A"), Piece(4, b"B"))), 1.0)
    requests.lost("reset")
    assert requests.due_messages(1.0, SIZE) == [LookUp(2, 7, "hash", ("a", "b"))]
    requests.receive(Blocks(1, (Piece(4, b"BBB"),)), 1.0)
    requests.receive(Blocks(2, (Piece(1, b"A"), Piece(1, b"B"))), 1.0)
    assert one.future.result(0) == {"a": b"A", "b": b"B"}


def test_a_commit_has_its_position_and_is_never_sent_twice() -> None:
    answered, lost, unsent = commit(), commit(), commit()
    requests = sent(answered, lost)
    requests.receive(Committed(1, 12), 1.0)
    requests.add(unsent)
    requests.lost("reset")
    assert answered.future.result(0) == 12
    for one in (lost, unsent):
        assert str(one.future.exception(0)) == "no answer to the commit: reset"
    assert requests.due_messages(1.0, SIZE) == []
    requests.receive(Committed(2, 13), 1.0)
    assert requests.is_idle


def test_a_commit_that_fits_no_frame_fails_alone() -> None:
    large, small = commit(b"x" * SIZE), commit()
    requests = pending(large, small)
    assert [message.id for message in requests.due_messages(0.0, SIZE)] == [1]
    assert isinstance(large.future.exception(0), InvalidRequest)
    assert not small.future.done()


def test_the_answer_to_another_question_is_no_answer() -> None:
    requests = pending(ask("a"), look_up("a"), commit())
    ids = {type(message): message.id for message in requests.due_messages(0.0, SIZE)}
    with pytest.raises(InvalidRequest, match="another kind of request"):
        requests.receive(Ack(ids[Commit]), 1.0)
    with pytest.raises(InvalidRequest, match="another kind of request"):
        requests.receive(Ack(ids[LookUp]), 1.0)
    with pytest.raises(InvalidRequest, match="another kind of request"):
        requests.receive(Blocks(ids[CreateMarkers], (Piece(0, b""),)), 1.0)


@given(st.lists(st.sampled_from(["ask", "ack", "lose", "late ack", "overload", "send"]), max_size=40), st.data())
def test_every_ask_ends_in_exactly_the_ack_of_all_its_paths(steps: list[str], data: st.DataObject) -> None:
    """However answers, losses and refusals interleave, a result means that each of the paths was acked."""
    requests, asks, inflight, acked, now = pending(), list[PendingMarkers](), dict[int, Request](), set[str](), 0.0
    lost: list[int] = []

    def send() -> None:
        inflight.update((message.id, message) for message in requests.due_messages(now, 600))

    for step in [*steps, "lose"]:
        now += 1.0
        if step == "ask":
            asks.append(ask(*(f"{len(asks)}/{n:0400}" for n in range(data.draw(st.integers(1, 3)))), deadline=1e9))
            requests.add(asks[-1])
        elif step == "send":
            send()
        elif step == "lose":
            requests.lost("reset")
            lost += inflight
            inflight.clear()
        elif step == "late ack":
            requests.receive(Ack(lost.pop() if lost else 0), now)
        elif inflight:
            request = inflight.pop(data.draw(st.sampled_from(sorted(inflight))))
            assert isinstance(request, CreateMarkers)
            if step == "ack":
                acked.update(request.paths)
                requests.receive(Ack(request.id), now)
            else:
                requests.receive(Refusal(request.id, Overloaded("full", retry_after_s=0.1)), now)
        assert all(set(each.names) <= acked for each in asks if each.future.done())
    now += 10.0
    send()
    for request_id in inflight:
        requests.receive(Ack(request_id), now)
    assert all(each.future.result(0) is None for each in asks)
    assert requests.is_idle
