"""What a service says, as a client reads it."""

from contextlib import suppress

from tallymark.engine.errors import InvalidRequest, Overloaded, Sealed
from tallymark.engine.rpc.messages import Ack, BlockGatherer, Blocks, Piece, Refusal, decode_answer, encode_answer

PIECES = (Piece(3, b"abc"), Piece(9, b"half"), Piece(9, b"whole"), Piece(0, b""))


def seeds() -> list[bytes]:
    refused = Refusal(2, Overloaded("queue is full", retry_after_s=0.25)), Refusal(0, Sealed("it is over"))
    return [encode_answer(answer) for answer in (Ack(1), Ack(2**63 - 1), Blocks(7, PIECES), *refused)]


def target(data: bytes) -> bool:
    try:
        answer = decode_answer(data)
    except InvalidRequest:
        return False
    assert encode_answer(decode_answer(encode_answer(answer))) == encode_answer(answer)
    if isinstance(answer, Blocks):
        gather(answer)
    return True


def gather(answer: Blocks) -> None:
    """Blocks come to no more than the pieces did."""
    gatherer = BlockGatherer(3)
    with suppress(InvalidRequest):
        gatherer.add(answer.pieces)
    assert len(gatherer.blocks) <= 3
    assert sum(map(len, gatherer.blocks)) <= sum(len(piece.data) for piece in answer.pieces)
