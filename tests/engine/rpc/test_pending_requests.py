import pytest
from hypothesis import given
from hypothesis import strategies as st

from tallymark.backends.errors import TallymarkError
from tallymark.engine.errors import (
    Closed,
    FlushFailed,
    InvalidRequest,
    Overloaded,
    Sealed,
    ServiceOverloaded,
    ServiceUnavailable,
)
from tallymark.engine.rpc.ask import Ask, LookUpAsk
from tallymark.engine.rpc.joining import JOINED_BYTES_MAX
from tallymark.engine.rpc.messages import Ack, Blocks, CreateMarkers, LookUp, Piece, Refusal, Request, encode_request
from tallymark.engine.rpc.pending_requests import Conversation

SIZE = 2000


def ask(*paths: str, deadline: float = 60.0) -> Ask:
    return Ask(paths, "CREATE", deadline)


def look_up(*partitions: str, deadline: float = 60.0) -> LookUpAsk:
    return LookUpAsk(7, "hash", partitions, deadline)


def conversation(*asks: Ask | LookUpAsk) -> Conversation:
    made = Conversation(jitter=lambda: 0.5)
    for each in asks:
        made.add(each)
    return made


def test_an_ask_has_its_result_with_its_ack_and_not_before() -> None:
    one = ask("a", "b")
    talk = conversation(one)
    assert talk.take_requests(0.0, SIZE) == [CreateMarkers(1, ("a", "b"), "CREATE")]
    assert not one.future.done()
    talk.receive(Ack(1), 1.0)
    assert one.future.result(0) is None
    assert talk.is_idle


def test_a_sent_request_is_not_sent_again_while_the_connection_stands() -> None:
    talk = conversation(ask("a"))
    talk.take_requests(0.0, SIZE)
    assert talk.take_requests(50.0, SIZE) == []


def test_an_ask_in_parts_has_its_result_with_the_last_ack() -> None:
    one = ask(*(f"{n:0500}" for n in range(4)))
    talk = conversation(one)
    parts = talk.take_requests(0.0, 600)
    assert len(parts) == 4
    for part in parts[:-1]:
        talk.receive(Ack(part.id), 1.0)
        assert not one.future.done()
    talk.receive(Ack(parts[-1].id), 1.0)
    assert one.future.result(0) is None


def test_a_refused_part_fails_the_ask_and_its_other_parts_are_forgotten() -> None:
    one = ask(*(f"{n:0500}" for n in range(3)))
    talk = conversation(one)
    first, second, third = talk.take_requests(0.0, 600)
    talk.receive(Refusal(second.id, FlushFailed("storage")), 1.0)
    with pytest.raises(FlushFailed, match="storage"):
        one.future.result(0)
    talk.receive(Ack(first.id), 1.0)
    talk.lost("reset")
    assert talk.take_requests(2.0, 600) == []
    talk.receive(Ack(third.id), 2.0)
    assert talk.is_idle


def test_what_was_not_answered_before_a_loss_is_sent_again_under_new_ids() -> None:
    answered, open_ask = ask("a"), ask("b")
    talk = conversation(answered)
    talk.take_requests(0.0, SIZE)
    talk.add(open_ask)
    talk.take_requests(0.0, SIZE)
    talk.receive(Ack(1), 1.0)
    talk.lost("reset")
    assert talk.take_requests(1.0, SIZE) == [CreateMarkers(3, ("b",), "CREATE")]
    talk.receive(Ack(2), 1.0)
    assert not open_ask.future.done()
    talk.receive(Ack(3), 1.0)
    assert open_ask.future.done()


def test_overloaded_is_asked_again_after_its_pause() -> None:
    one = ask("a")
    talk = conversation(one)
    talk.take_requests(0.0, SIZE)
    talk.receive(Refusal(1, Overloaded("queue is full", retry_after_s=2.0)), 10.0)
    assert talk.seconds_to_next(10.0) == 2.0
    assert talk.take_requests(11.9, SIZE) == []
    assert talk.take_requests(12.0, SIZE) == [CreateMarkers(2, ("a",), "CREATE")]
    assert "queue is full" in talk.problem


def test_an_ask_that_is_put_off_to_the_end_fails_as_such_unless_the_service_has_gone_since() -> None:
    for is_lost in (False, True):
        put_off = ask("a", deadline=20.0)
        talk = conversation(put_off)
        talk.take_requests(0.0, SIZE)
        talk.receive(Refusal(1, Overloaded("full", retry_after_s=100.0)), 10.0)
        if is_lost:
            talk.lost("reset")
        talk.expire(20.0, lambda _: ServiceUnavailable("late"))
        assert isinstance(put_off.future.exception(0), ServiceOverloaded) is not is_lost
        assert str(put_off.future.exception(0)) == "late"


def test_overloaded_without_a_pause_does_not_spin() -> None:
    talk = conversation(ask("a"))
    talk.take_requests(0.0, SIZE)
    talk.receive(Refusal(1, Overloaded("full", retry_after_s=0.0)), 10.0)
    pause_s = talk.seconds_to_next(10.0)
    assert pause_s
    assert pause_s > 0


def test_an_ask_fails_at_its_deadline_and_a_later_answer_is_ignored() -> None:
    early, late = ask("a", deadline=5.0), ask("b", deadline=6.0)
    talk = conversation(early)
    assert talk.seconds_to_next(1.0) == 0.0
    assert talk.seconds_to_deadline(1.0) == 4.0
    talk.take_requests(1.0, SIZE)
    talk.add(late)
    talk.take_requests(1.0, SIZE)
    assert talk.seconds_to_next(1.0) == 4.0
    talk.expire(4.9, lambda _: ServiceUnavailable("late"))
    assert not early.future.done()
    talk.expire(5.0, lambda _: ServiceUnavailable("late"))
    with pytest.raises(ServiceUnavailable):
        early.future.result(0)
    talk.receive(Ack(1), 5.5)
    assert not late.future.done()


def test_an_expired_ask_is_not_sent() -> None:
    talk = conversation(ask("a", deadline=5.0))
    talk.expire(5.0, lambda _: ServiceUnavailable("late"))
    assert talk.take_requests(5.0, SIZE) == []
    assert talk.seconds_to_next(5.0) is None


def test_a_path_that_fits_no_frame_fails_its_own_ask_only() -> None:
    long, short = ask("a" * 3000, "b"), ask("c")
    talk = conversation(long, short)
    assert talk.take_requests(0.0, SIZE) == [CreateMarkers(1, ("c",), "CREATE")]
    with pytest.raises(InvalidRequest, match="frame_bytes"):
        long.future.result(0)


def test_the_end_settles_everybody() -> None:
    sent, unsent = ask("a"), ask("b")
    talk = conversation(sent)
    talk.take_requests(0.0, SIZE)
    talk.add(unsent)
    talk.fail_all(Closed("over"))
    assert talk.is_idle
    for each in (sent, unsent):
        with pytest.raises(Closed):
            each.future.result(0)


def test_a_look_up_has_its_blocks_when_the_last_of_them_is_whole() -> None:
    one = look_up("a", "b")
    talk = conversation(one)
    assert talk.take_requests(0.0, SIZE) == [LookUp(1, 7, "hash", ("a", "b"))]
    talk.receive(Blocks(1, (Piece(1, b"A"), Piece(3, b"B"))), 1.0)
    assert not one.future.done()
    talk.receive(Blocks(1, (Piece(3, b"B"),)), 1.0)
    assert not one.future.done()
    talk.receive(Blocks(1, (Piece(3, b"B"),)), 1.0)
    assert one.future.result(0) == {"a": b"A", "b": b"BBB"}
    assert talk.is_idle


def test_a_look_up_of_more_partitions_than_a_request_takes_has_the_blocks_of_all() -> None:
    names = [f"{n:0500}" for n in range(4)]
    one = look_up(*names)
    talk = conversation(one)
    parts = talk.take_requests(0.0, 600)
    assert len(parts) == 4
    for number, part in enumerate(parts):
        talk.receive(Blocks(part.id, (Piece(1, bytes([number])),)), 1.0)
    assert one.future.result(0) == {name: bytes([number]) for number, name in enumerate(names)}


def test_a_look_up_that_was_answered_in_part_before_a_loss_begins_anew() -> None:
    one = look_up("a", "b")
    talk = conversation(one)
    talk.take_requests(0.0, SIZE)
    talk.receive(Blocks(1, (Piece(1, b"A"), Piece(4, b"B"))), 1.0)
    talk.lost("reset")
    assert talk.take_requests(1.0, SIZE) == [LookUp(2, 7, "hash", ("a", "b"))]
    talk.receive(Blocks(1, (Piece(4, b"BBB"),)), 1.0)
    talk.receive(Blocks(2, (Piece(1, b"A"), Piece(1, b"B"))), 1.0)
    assert one.future.result(0) == {"a": b"A", "b": b"B"}


def test_look_ups_and_markers_fail_each_at_its_own_deadline() -> None:
    marker, quick = ask("a", deadline=20.0), look_up("a", deadline=5.0)
    talk = conversation(marker, quick)
    assert talk.seconds_to_deadline(0.0) == 5.0
    talk.expire(5.0, lambda _: ServiceUnavailable("late"))
    assert isinstance(quick.future.exception(0), ServiceUnavailable)
    assert not marker.future.done()
    assert talk.seconds_to_deadline(5.0) == 15.0


def test_the_answer_to_another_question_is_no_answer() -> None:
    talk = conversation(ask("a"), look_up("a"))
    ids = {type(request): request.id for request in talk.take_requests(0.0, SIZE)}
    with pytest.raises(InvalidRequest, match="another question"):
        talk.receive(Ack(ids[LookUp]), 1.0)
    with pytest.raises(InvalidRequest, match="another question"):
        talk.receive(Blocks(ids[CreateMarkers], (Piece(0, b""),)), 1.0)


def test_asks_that_wait_together_go_together_and_each_has_its_result() -> None:
    asks = [ask("a"), ask("b", "c"), Ask(("d",), "MERGE", 60.0), ask("e")]
    talk = conversation(*asks)
    joined, merge = talk.take_requests(0.0, SIZE)
    assert joined == CreateMarkers(1, ("a", "b", "c", "e"), "CREATE")
    assert merge == CreateMarkers(2, ("d",), "MERGE")
    talk.receive(Ack(1), 1.0)
    assert [each.future.done() for each in asks] == [True, True, False, True]
    talk.receive(Ack(2), 1.0)
    assert talk.is_idle


def test_joined_requests_are_no_larger_than_the_service_takes_nor_than_it_reads_at_once() -> None:
    for message_bytes, at_most in ((600, 600), (1 << 20, JOINED_BYTES_MAX)):
        asks = [ask(f"{n:0100}") for n in range(1000)]
        talk = conversation(*asks)
        requests = talk.take_requests(0.0, message_bytes)
        assert max(len(encode_request(request)) for request in requests) <= at_most
        assert len(requests) < 300
        for request in requests:
            talk.receive(Ack(request.id), 1.0)
        assert all(each.future.result(0) is None for each in asks)


def test_a_large_ask_is_not_joined_and_takes_as_many_requests_as_it_needs() -> None:
    small, large = ask("a"), ask(*(f"{n:0100}" for n in range(1000)))
    talk = conversation(small, large)
    requests = talk.take_requests(0.0, 1 << 20)
    assert [len(request.paths) for request in requests if isinstance(request, CreateMarkers)] == [1, 1000]


@pytest.mark.parametrize("error", [InvalidRequest("bad"), ServiceUnavailable("a fault")])
def test_a_refusal_for_one_of_those_that_went_together_reaches_that_one_only(error: TallymarkError) -> None:
    asks = [ask(f"good{n}") for n in range(10)] + [ask("bad")] + [ask(f"fine{n}") for n in range(10)]
    talk = conversation(*asks)
    for _ in range(10):
        for request in talk.take_requests(1.0, SIZE):
            assert isinstance(request, CreateMarkers)
            talk.receive(Refusal(request.id, error) if "bad" in request.paths else Ack(request.id), 1.0)
    assert talk.is_idle
    assert [each.paths for each in asks if each.future.exception(0)] == [("bad",)]


def test_of_those_that_went_together_each_that_has_room_alone_is_acked() -> None:
    """A service that takes three names at once."""
    asks = [ask(*(f"{number}/{n}" for n in range(1 + number % 4))) for number in range(20)]
    talk, now = conversation(*asks), 0.0
    for _ in range(10):
        now += 1.0
        for request in talk.take_requests(now, SIZE):
            assert isinstance(request, CreateMarkers)
            full = Refusal(request.id, Overloaded("full", retry_after_s=0.1))
            talk.receive(full if len(request.paths) > 3 else Ack(request.id), now)
    assert {len(each.paths) for each in asks if each.future.done()} == {1, 2, 3}
    assert {len(each.paths) for each in asks if not each.future.done()} == {4}


@pytest.mark.parametrize("error", [FlushFailed("storage"), Sealed("over")])
def test_a_refusal_that_is_nobody_s_fault_reaches_all_who_went_together(error: TallymarkError) -> None:
    asks = [ask("a"), ask("b")]
    talk = conversation(*asks)
    talk.take_requests(0.0, SIZE)
    talk.receive(Refusal(1, error), 1.0)
    assert [each.future.exception(0) for each in asks] == [error, error]


def test_of_those_that_went_together_one_may_have_failed_before_the_ack() -> None:
    early, late = ask("a", deadline=5.0), ask("b", deadline=6.0)
    talk = conversation(early, late)
    talk.take_requests(1.0, SIZE)
    talk.expire(5.0, lambda _: ServiceUnavailable("late"))
    talk.receive(Ack(1), 5.5)
    assert isinstance(early.future.exception(0), ServiceUnavailable)
    assert late.future.result(0) is None


def test_an_ask_cannot_be_cancelled() -> None:
    one = ask("a")
    assert not one.future.cancel()


@given(st.lists(st.sampled_from(["ask", "ack", "lose", "overload", "send"]), max_size=40), st.data())
def test_every_ask_ends_in_exactly_the_ack_of_all_its_paths(steps: list[str], data: st.DataObject) -> None:
    """However answers, losses and refusals interleave, a result means that each of the paths was acked."""
    talk, asks, inflight, acked, now = conversation(), list[Ask](), dict[int, Request](), set[str](), 0.0

    def send() -> None:
        inflight.update((request.id, request) for request in talk.take_requests(now, 600))

    for step in [*steps, "lose"]:
        now += 1.0
        if step == "ask":
            asks.append(ask(*(f"{len(asks)}/{n:0400}" for n in range(data.draw(st.integers(1, 3)))), deadline=1e9))
            talk.add(asks[-1])
        elif step == "send":
            send()
        elif step == "lose":
            talk.lost("reset")
            inflight.clear()
        elif inflight:
            request = inflight.pop(data.draw(st.sampled_from(sorted(inflight))))
            assert isinstance(request, CreateMarkers)
            if step == "ack":
                acked.update(request.paths)
                talk.receive(Ack(request.id), now)
            else:
                talk.receive(Refusal(request.id, Overloaded("full", retry_after_s=0.1)), now)
        assert all(set(each.paths) <= acked for each in asks if each.future.done())
    now += 10.0
    send()
    for request_id in inflight:
        talk.receive(Ack(request_id), now)
    assert all(each.future.result(0) is None for each in asks)
    assert talk.is_idle
