import pytest
from hypothesis import given
from hypothesis import strategies as st

from tallymark.engine.errors import InvalidRequest
from tallymark.engine.rpc import messages
from tallymark.engine.rpc.messages import BlockCutter, BlockGatherer, Blocks, Piece


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
