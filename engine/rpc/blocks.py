"""The blocks of a look-up on their way: cut so that each answer fits a frame, and put together again. Sans-I/O.

A block may be larger than a frame, and thousands of them smaller: an answer carries pieces, in the order of the
partitions that were asked for. A piece says how large its block is, so that whoever gathers them knows a whole block
from a part of one.
"""

from collections.abc import Iterator

from tallymark.engine.errors import InvalidRequest
from tallymark.engine.rpc.messages import ANSWER_OVERHEAD_BYTES, PIECE_COUNT_MAX, PIECE_OVERHEAD_BYTES, Blocks, Piece


class BlockCutter:
    """The answers to one look-up: ``add`` each block, then send ``rest``."""

    def __init__(self, request_id: int, message_bytes: int) -> None:
        """``message_bytes``: what an answer may take."""
        self._id = request_id
        self._room = message_bytes - ANSWER_OVERHEAD_BYTES
        self._pieces: list[Piece] = []
        self._used = 0

    def add(self, block: bytes) -> Iterator[Blocks]:
        """Yield the answers that this block fills."""
        start = 0
        while True:
            free = self._room - self._used - PIECE_OVERHEAD_BYTES
            if free <= 0 or len(self._pieces) == PIECE_COUNT_MAX:
                yield self.rest()
                continue
            data = block[start : start + free]
            start += len(data)
            self._pieces.append(Piece(len(block), data))
            self._used += len(data) + PIECE_OVERHEAD_BYTES
            if start == len(block):
                return

    def rest(self) -> Blocks:
        """Return the answer with what was added and not sent yet."""
        answer = Blocks(self._id, tuple(self._pieces))
        self._pieces, self._used = [], 0
        return answer


class BlockGatherer:
    """Puts the pieces of as many blocks together as partitions were asked for."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._begun = bytearray()
        self.blocks: list[bytes] = []
        """Those that are whole, in the order in which they were asked for."""

    @property
    def is_whole(self) -> bool:
        return len(self.blocks) == self._count

    def add(self, pieces: tuple[Piece, ...]) -> None:
        """Raises InvalidRequest for pieces that do not follow those before."""
        for piece in pieces:
            if not self._begun and len(piece.data) == piece.size and not self.is_whole:
                self.blocks.append(piece.data)  # as it came, without a copy
                continue
            self._begun += piece.data
            if self.is_whole or len(self._begun) > piece.size:
                raise InvalidRequest("the service answered a look-up with blocks that nobody asked for; report this")
            if len(self._begun) == piece.size:
                self.blocks.append(bytes(self._begun))
                self._begun.clear()
