"""Messages and blocks: every value survives its encoding, and other bytes are refused. (``tests.fuzz``: any bytes.)"""

from contextlib import suppress

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tallymark.backends.errors import NotPermitted, TallymarkError
from tallymark.engine.errors import (
    Closed,
    FlushFailed,
    InvalidRequest,
    NotAuthenticated,
    Overloaded,
    RolledBack,
    Sealed,
    ServiceUnavailable,
    UnsupportedTable,
)
from tallymark.engine.rpc import messages
from tallymark.engine.rpc.messages import (
    Ack,
    BlockCutter,
    BlockGatherer,
    Blocks,
    Commit,
    Committed,
    CreateMarkers,
    LookUp,
    Piece,
    Refusal,
)

ids = st.integers(1, 2**63 - 1)
text = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
scalars = st.one_of(st.integers(-(2**63), 2**64 - 1), st.floats(allow_nan=False), text, st.binary(max_size=30))
sizes = st.integers(1, 60)


@given(st.lists(scalars, max_size=8))
def test_scalars_come_back_as_they_were_packed_and_what_lost_its_end_is_never_taken_for_the_whole(
    values: list[messages.Scalar],
) -> None:
    packed = messages.pack(*values)
    assert messages.unpack(packed) == values
    for size in range(len(packed)):
        with suppress(InvalidRequest):  # unless it is cut between two values
            assert messages.pack(*messages.unpack(packed[:size])) == packed[:size]


@pytest.mark.parametrize(
    "data",
    [
        b"\xc0",
        b"\xc3",
        b"\x90",
        b"\x91\x01",
        b"\x80",
        b"\x81\xa1a\x01",
        b"\xdd\xff\xff\xff\xff",
        b"\xdf\xff\xff\xff\xff",
        b"\xdb\xff\xff\xff\xff",
        b"\x91" * 2000,
        msgpack.packb(msgpack.ExtType(1, b"")),
        msgpack.packb(msgpack.Timestamp(1)),
        b"\xa1\xff",
        b"\xc1",
    ],
)
def test_nothing_but_whole_scalars_is_unpacked(data: bytes) -> None:
    with pytest.raises(InvalidRequest):
        messages.unpack(b"\x01" + data)


names = st.lists(text, min_size=1, max_size=10).map(tuple)
pieces = st.builds(Piece, st.integers(30, 2**63 - 1), st.binary(max_size=30))
creates = st.builds(CreateMarkers, ids, st.just(()) | names, st.sampled_from(["CREATE", "MERGE", "APPEND", "?"]))
look_ups = st.builds(LookUp, ids, st.integers(0, 2**63 - 1), text, names)
commits = st.builds(
    Commit, ids, st.integers(0, 2**63 - 1), text, st.binary(), st.lists(st.integers(0, 2**63 - 1)).map(tuple)
)
blocks = st.builds(Blocks, ids, st.lists(pieces, min_size=1, max_size=10).map(tuple))


@given(creates | look_ups | commits, st.builds(Ack, ids) | blocks | st.builds(Committed, ids, ids))
def test_requests_and_answers_come_back_as_they_were_encoded(
    request: messages.Request, answer: Ack | Blocks | Committed
) -> None:
    assert messages.decode_request(messages.encode_request(request)) == request
    assert messages.decode_answer(messages.encode_answer(answer)) == answer


MANY = tuple(map(str, range(messages.PATH_COUNT_MAX + 1)))


@pytest.mark.parametrize(
    "fields",
    [
        (messages.CREATE_MARKERS, messages.WHOLE_CONNECTION, "CREATE", "a"),
        (messages.CREATE_MARKERS, 1, "CREATE", *MANY),
        (messages.LOOK_UP, 1, 7, "hash"),
        (messages.LOOK_UP, 1, -1, "hash", "a"),
        (messages.LOOK_UP, messages.WHOLE_CONNECTION, 7, "hash", "a"),
        (messages.LOOK_UP, 1, 7, "hash", b"a"),
        (messages.LOOK_UP, 1, "7", "hash", "a"),
        (messages.LOOK_UP, 1, 7, "hash", *MANY),
        (messages.COMMIT, messages.WHOLE_CONNECTION, 7, "hash", b"entry"),
        (messages.COMMIT, 1, -1, "hash", b"entry"),
        (messages.COMMIT, 1, 7, "hash", "entry"),
        (messages.COMMIT, 1, 7, "hash", b"entry", -1),
        (messages.COMMIT, 1, 7, "hash", b"entry", "1"),
        (messages.COMMITTED, 1, 0),
        (messages.COMMITTED, messages.WHOLE_CONNECTION, 1),
        (messages.ACK, messages.WHOLE_CONNECTION),
        *((messages.BLOCKS, 1, *told) for told in [(), (1,), (1, b"a", 1), (0, b"a"), (1, "a"), (b"a", 1)]),
    ],
)
def test_a_message_that_asks_for_nothing_or_too_much_or_of_no_request_is_refused(
    fields: tuple[messages.Scalar, ...],
) -> None:
    is_answer = fields[0] in (messages.ACK, messages.BLOCKS, messages.COMMITTED)
    decode, what = (messages.decode_answer, "answer") if is_answer else (messages.decode_request, "request|message")
    with pytest.raises(InvalidRequest, match=f"({what}) that .*{messages.PATH_COUNT_MAX} paths"):
        decode(messages.pack(*fields))


@given(st.floats(0, 3600), st.sampled_from([float("nan"), float("inf"), -1.0]))
def test_overloaded_says_after_the_wire_when_to_come_back_and_no_duration_is_none(pause_s: float, none: float) -> None:
    told = messages.encode_error(Overloaded("queue is full", retry_after_s=pause_s))
    for error, found_s in ((messages.decode_error(*told), pause_s), (messages.decode_error(*told[:2], none), 0.0)):
        assert isinstance(error, Overloaded)
        assert (str(error), error.retry_after_s) == ("queue is full", found_s)


@given(st.text(max_size=20), st.integers(0, 3000))
def test_a_refusal_fits_an_answer_whatever_its_text(end: str, count: int) -> None:
    encoded = messages.encode_answer(Refusal(1, NotPermitted("\udc80\U0001f600" * count + end)))
    assert len(encoded) + 16 <= messages.ANSWER_BYTES


@given(st.lists(text, max_size=30), st.integers(200, 400))
def test_split_paths_keep_their_order_and_fit(paths: list[str], message_bytes: int) -> None:
    runs = list(messages.split_paths(paths, "CREATE", message_bytes))
    assert [path for run in runs for path in run] == paths
    encoded = [messages.encode_request(CreateMarkers(2**63 - 1, run, "CREATE")) for run in runs]
    assert all(len(request) <= message_bytes for request in encoded)


def test_many_short_paths_are_split_by_the_count_that_a_request_may_hold() -> None:
    runs = list(messages.split_paths(MANY, "CREATE", 1 << 20))
    assert list(map(len, runs)) == [messages.PATH_COUNT_MAX, 1]
    most = CreateMarkers(1, runs[0], "CREATE")
    assert messages.decode_request(messages.encode_request(most)) == most


@pytest.mark.parametrize(
    ("error", "kind", "words"),
    [
        *(
            (kind("because"), kind, "because")
            for kind in (FlushFailed, Closed, Sealed, RolledBack, InvalidRequest, NotAuthenticated, ServiceUnavailable)
        ),
        (UnsupportedTable("a special kind"), InvalidRequest, "a special kind"),
        (NotPermitted("disk is full"), ServiceUnavailable, "NotPermitted: disk is full"),
    ],
)
def test_an_error_comes_back_as_the_class_and_text_that_it_was_or_the_nearest(
    error: TallymarkError, kind: type[TallymarkError], words: str
) -> None:
    answer = messages.decode_answer(messages.encode_answer(Refusal(7, error)))
    assert isinstance(answer, Refusal)
    assert (answer.id, type(answer.error), str(answer.error)) == (7, kind, words)


def test_a_code_of_another_release_is_service_unavailable() -> None:
    assert type(messages.decode_error("QuotaReached", "later", 0.0)) is ServiceUnavailable


def answers(blocks: list[bytes], message_bytes: int) -> list[Blocks]:
    cutter = BlockCutter(2**63 - 1, message_bytes)
    return [*(full for block in blocks for full in cutter.add(block)), cutter.rest()]


@given(st.lists(st.binary(max_size=300), min_size=1, max_size=20), st.integers(50, 400))
def test_blocks_fit_their_answers_and_are_put_together_as_they_were(blocks: list[bytes], message_bytes: int) -> None:
    gathered = BlockGatherer(len(blocks))
    for answer in answers(blocks, message_bytes):
        assert not gathered.is_whole
        encoded = messages.encode_answer(answer)
        assert len(encoded) <= message_bytes
        assert messages.decode_answer(encoded) == answer
        gathered.add(answer.pieces)
    assert gathered.is_whole
    assert gathered.blocks == blocks


def test_a_block_of_many_frames_fills_all_but_the_last() -> None:
    block = bytes(10_000)
    sizes = [len(messages.encode_answer(answer)) for answer in answers([block], 1000)]
    assert len(sizes) == 11
    assert min(sizes[:-1]) > 970


def test_more_empty_partitions_than_an_answer_takes_go_in_several() -> None:
    parts = answers([b""] * (messages.PIECE_COUNT_MAX + 1), 1 << 20)
    assert [len(part.pieces) for part in parts] == [messages.PIECE_COUNT_MAX, 1]


@given(st.lists(st.binary(max_size=60), min_size=1, max_size=6), st.data())
def test_an_answer_that_lacks_a_piece_is_never_whole(blocks: list[bytes], data: st.DataObject) -> None:
    pieces = [piece for answer in answers(blocks, 50) for piece in answer.pieces]
    del pieces[data.draw(st.integers(0, len(pieces) - 1))]
    gathered = BlockGatherer(len(blocks))
    try:
        gathered.add(tuple(pieces))
    except InvalidRequest:
        return
    assert not gathered.is_whole


@pytest.mark.parametrize("pieces", [(Piece(1, b"a"), Piece(1, b"b")), (Piece(5, b"aaaa"), Piece(5, b"bb"))])
def test_pieces_that_nobody_asked_for_are_refused(pieces: tuple[Piece, ...]) -> None:
    with pytest.raises(InvalidRequest, match="not requested"):
        BlockGatherer(1).add(pieces)
