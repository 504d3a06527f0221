"""Messages between tasks and the service, as bytes and as values. Sans-I/O.

A message is a sequence of msgpack scalars (whole numbers, floats, text, bytes) that fills its frame. Arrays, maps and
extension types are refused by their headers, so that a few bytes cannot claim memory by declaring a large or deep
structure, and no map key is ever decoded.

    CreateMarkers   1, id, io, path, path, ...
    Ack             2, id
    Refusal         3, id, code, text, retry_after_s
    LookUp          4, id, position, hash, partition, partition, ...
    Blocks          5, id, size, piece, size, piece, ...
    Commit          6, id, position, hash, entry, first, first, ...
    Committed       7, id, position
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import cast

import msgpack

from tallymark.backends.errors import TallymarkError
from tallymark.engine.errors import (
    Closed,
    FlushFailed,
    InvalidRequest,
    NotAuthenticated,
    Overloaded,
    RolledBack,
    Sealed,
    ServiceUnavailable,
)

Scalar = int | float | str | bytes

CREATE_MARKERS, ACK, REFUSAL, LOOK_UP, BLOCKS, COMMIT, COMMITTED = 1, 2, 3, 4, 5, 6, 7

WHOLE_CONNECTION = 0
"""Id of a refusal that answers no single request: it ends the connection."""
PATH_COUNT_MAX = 16_384
"""Maximum number of paths, or partitions, in one request, however short they are."""
PIECE_COUNT_MAX = PATH_COUNT_MAX // 2
"""Maximum number of pieces in one answer, however short they are."""
ANSWER_BYTES = 8192
"""The largest frame that a service sends, except for blocks: those are bounded by ``ServiceSettings.frame_bytes``,
which the handshake contains.
"""
PIECE_OVERHEAD_BYTES = 14
ANSWER_OVERHEAD_BYTES = 16

_TEXT = frozenset((str,))
_SCALARS = frozenset((int, float, str, bytes))
_VALUE_COUNT_MAX = PATH_COUNT_MAX + 4
_TEXT_BYTES_MAX = ANSWER_BYTES - 192  # leaves room for the rest of a refusal, and for what a session adds
_RETRY_AFTER_S_MAX = 3600.0
_REQUEST_OVERHEAD_BYTES = 32
_PATH_OVERHEAD_BYTES = 5


@dataclass(frozen=True, slots=True)
class CreateMarkers:
    """Request to make these markers durable."""

    id: int
    """Chosen by the client, unique among its unanswered requests; above zero."""
    paths: tuple[str, ...]
    io: str


@dataclass(frozen=True, slots=True)
class LookUp:
    """Request for the contents of these partitions as of a position."""

    id: int
    """As ``CreateMarkers.id``."""
    position: int
    hash: str
    """Hash of the log at the position."""
    partitions: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Commit:
    """Request to decide a commit."""

    id: int
    """As ``CreateMarkers.id``."""
    position: int
    """How far its writer has read the log."""
    hash: str
    """Hash of the log at the position."""
    entry: bytes
    """As ``encode_entry`` writes it."""
    firsts: tuple[int, ...] = ()
    """For each producer of the entry, the sequence number of its first batch in it."""


@dataclass(frozen=True, slots=True)
class Ack:
    """All markers of the request are durable."""

    id: int


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a block, or all of it."""

    size: int
    """Size of the whole block in bytes."""
    data: bytes


@dataclass(frozen=True, slots=True)
class Blocks:
    """Blocks of the request's partitions, in its order; the rest follows in another answer."""

    id: int
    pieces: tuple[Piece, ...]


@dataclass(frozen=True, slots=True)
class Committed:
    """The commit of the request is in the log."""

    id: int
    position: int


@dataclass(frozen=True, slots=True)
class Refusal:
    """The request was not carried out; the error determines what the client does next."""

    id: int
    error: TallymarkError


Request = CreateMarkers | LookUp | Commit
Answer = Ack | Blocks | Committed | Refusal

_ERRORS: dict[str, type[TallymarkError]] = {
    error.__name__: error
    for error in (FlushFailed, Closed, Sealed, RolledBack, InvalidRequest, NotAuthenticated, ServiceUnavailable)
}


def encode_request(request: Request) -> bytes:
    match request:
        case CreateMarkers():
            return pack(CREATE_MARKERS, request.id, request.io, *request.paths)
        case LookUp():
            return pack(LOOK_UP, request.id, request.position, request.hash, *request.partitions)
        case Commit():
            return pack(COMMIT, request.id, request.position, request.hash, request.entry, *request.firsts)


def decode_request(data: bytes) -> Request:
    """Return the request. Raises InvalidRequest for bytes that ``encode_request`` does not write."""
    match unpack(data):
        case [int(kind), int(request_id), str(io), *paths] if kind == CREATE_MARKERS and request_id > WHOLE_CONNECTION:
            return CreateMarkers(request_id, _texts(paths), io)
        case [int(kind), int(request_id), int(position), str(log), *partitions] if (
            kind == LOOK_UP and request_id > WHOLE_CONNECTION and position >= 0 and partitions
        ):
            return LookUp(request_id, position, log, _texts(partitions))
        case [int(kind), int(request_id), int(position), str(log), bytes(entry), *firsts] if (
            kind == COMMIT and request_id > WHOLE_CONNECTION and position >= 0
        ):
            return Commit(request_id, position, log, entry, _counts(firsts))
    raise _malformed("a request")


def encode_answer(answer: Answer) -> bytes:
    """Return the answer's bytes, at most ANSWER_BYTES except for blocks."""
    match answer:
        case Ack():
            return pack(ACK, answer.id)
        case Blocks():
            return pack(BLOCKS, answer.id, *(value for piece in answer.pieces for value in (piece.size, piece.data)))
        case Committed():
            return pack(COMMITTED, answer.id, answer.position)
        case Refusal():
            return pack(REFUSAL, answer.id, *encode_error(answer.error))


def decode_answer(data: bytes) -> Answer:
    """Return the answer. Raises InvalidRequest for bytes that ``encode_answer`` does not write."""
    match unpack(data):
        case [int(kind), int(request_id)] if kind == ACK and request_id > WHOLE_CONNECTION:
            return Ack(request_id)
        case [int(kind), int(request_id), *shared_text] if kind == BLOCKS and request_id > WHOLE_CONNECTION:
            return Blocks(request_id, _pieces(shared_text))
        case [int(kind), int(request_id), int(position)] if (
            kind == COMMITTED and request_id > WHOLE_CONNECTION and position > 0
        ):
            return Committed(request_id, position)
        case [int(kind), int(request_id), str(code), str(text), float(retry_after_s)] if kind == REFUSAL:
            return Refusal(request_id, decode_error(code, text, retry_after_s))
    raise _malformed("an answer")


def encode_error(error: TallymarkError) -> tuple[str, str, float]:
    """Return code, text and seconds. An error class without a code is sent as the nearest base class that has one."""
    if isinstance(error, Overloaded):
        return "Overloaded", _clipped(str(error)), min(max(float(error.retry_after_s), 0.0), _RETRY_AFTER_S_MAX)
    for kind in type(error).__mro__:
        if _ERRORS.get(kind.__name__) is kind:
            return kind.__name__, _clipped(str(error)), 0.0
    return "ServiceUnavailable", _clipped(f"{type(error).__name__}: {error}"), 0.0


def decode_error(code: str, text: str, retry_after_s: float) -> TallymarkError:
    """Return the error that ``encode_error`` wrote; a code of another release is ServiceUnavailable, never an ack."""
    if code == "Overloaded":
        pause_s = min(retry_after_s, _RETRY_AFTER_S_MAX) if retry_after_s > 0 and math.isfinite(retry_after_s) else 0.0
        return Overloaded(text, retry_after_s=pause_s)
    return _ERRORS.get(code, ServiceUnavailable)(text)


class BlockCutter:
    """Splits the answer to one lookup: ``add`` each block, then send ``rest``."""

    def __init__(self, request_id: int, message_bytes: int) -> None:
        """``message_bytes``: maximum size of an answer."""
        self._id = request_id
        self._room = message_bytes - ANSWER_OVERHEAD_BYTES
        self._pieces: list[Piece] = []
        self._used = 0

    def add(self, block: bytes) -> Iterator[Blocks]:
        """Yield the answers that this block completes."""
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
        """Return the answer with everything added and not sent yet."""
        answer = Blocks(self._id, tuple(self._pieces))
        self._pieces, self._used = [], 0
        return answer


class BlockGatherer:
    """Joins the pieces of as many blocks as partitions were requested."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._begun = bytearray()
        self.blocks: list[bytes] = []
        """Complete blocks, in the order in which they were requested."""

    @property
    def is_whole(self) -> bool:
        return len(self.blocks) == self._count

    def add(self, pieces: tuple[Piece, ...]) -> None:
        """Add the pieces. Raises InvalidRequest for pieces that do not follow those before."""
        for piece in pieces:
            if not self._begun and len(piece.data) == piece.size and not self.is_whole:
                self.blocks.append(piece.data)  # as it came, without a copy
                continue
            self._begun += piece.data
            if self.is_whole or len(self._begun) > piece.size:
                raise InvalidRequest("the service answered a look-up with blocks that were not requested; report this")
            if len(self._begun) == piece.size:
                self.blocks.append(bytes(self._begun))
                self._begun.clear()


def check_commit_fits(commit: Commit, message_bytes: int) -> None:
    """Raise InvalidRequest for a commit that one message cannot hold."""
    if (size := len(encode_request(commit))) > message_bytes:
        raise InvalidRequest(f"a commit of {size} bytes does not fit a message of {message_bytes} bytes")


def room_for_paths(shared_text: str, message_bytes: int) -> int:
    """Return the bytes that a request has left for its paths, or partitions, beside ``shared_text``."""
    return message_bytes - _REQUEST_OVERHEAD_BYTES - len(shared_text.encode("utf-8"))


def path_bytes(path: str) -> int:
    """Return the bytes of a path, or partition, in a request."""
    return _PATH_OVERHEAD_BYTES + (len(path) if path.isascii() else len(path.encode("utf-8")))


def split_paths(paths: Sequence[str], shared_text: str, message_bytes: int) -> Iterator[tuple[str, ...]]:
    """Yield the paths, or partitions, in runs whose requests take at most ``message_bytes`` each.

    ``shared_text`` is the text that each request contains beside them: how files are written, or the hash of a log.

    Raises:
        InvalidRequest: one path alone is too long.
    """
    room = room_for_paths(shared_text, message_bytes)
    run: list[str] = []
    used = 0
    for path in paths:
        size = path_bytes(path)
        if size > room:
            raise InvalidRequest(
                f"path {path[:200]!r}... of {size - _PATH_OVERHEAD_BYTES} bytes does not fit a message of "
                f"{message_bytes} bytes; shorten it, or raise ServiceSettings.frame_bytes"
            )
        if used + size > room or len(run) == PATH_COUNT_MAX:
            yield tuple(run)
            run, used = [], 0
        run.append(path)
        used += size
    if run:
        yield tuple(run)


def pack(*values: Scalar) -> bytes:
    packer = msgpack.Packer(autoreset=False)
    for value in values:
        packer.pack(value)
    return packer.bytes()


def unpack(data: bytes) -> list[Scalar]:
    """Return the scalars that ``pack`` wrote. Raises InvalidRequest for anything else."""
    unpacker = msgpack.Unpacker(
        max_buffer_size=len(data) + 1,
        max_str_len=len(data),
        max_bin_len=len(data),
        max_array_len=0,
        max_map_len=0,
        max_ext_len=0,
        strict_map_key=True,
    )
    # The nil behind the data comes out last only if the data ends with a whole value: an unpacker that is fed half a
    # value waits for the rest and says nothing.
    unpacker.feed(data + b"\xc0")
    try:
        values = list(islice(unpacker, _VALUE_COUNT_MAX + 1))
    except (ValueError, msgpack.UnpackException) as error:
        raise _malformed("a message") from error
    if not values or values.pop() is not None or not _SCALARS.issuperset(map(type, values)):
        raise _malformed("a message")
    return values


def _clipped(text: str) -> str:
    return text.encode("utf-8", "backslashreplace")[:_TEXT_BYTES_MAX].decode("utf-8", "ignore")


def _texts(values: Sequence[Scalar]) -> tuple[str, ...]:
    """Check that the values are texts, at most as many as a request may contain."""
    if len(values) > PATH_COUNT_MAX or not _TEXT.issuperset(map(type, values)):
        raise _malformed("a request")
    return cast("tuple[str, ...]", tuple(values))


def _counts(values: Sequence[Scalar]) -> tuple[int, ...]:
    if not all(isinstance(value, int) and value >= 0 for value in values):
        raise _malformed("a request")
    return cast("tuple[int, ...]", tuple(values))


def _pieces(shared_text: Sequence[Scalar]) -> tuple[Piece, ...]:
    pieces = tuple(
        Piece(size, data)
        for size, data in zip(shared_text[::2], shared_text[1::2], strict=False)
        if isinstance(size, int) and isinstance(data, bytes) and size >= len(data)
    )
    if 2 * len(pieces) != len(shared_text) or not pieces:
        raise _malformed("an answer")
    return pieces


def _malformed(what: str) -> InvalidRequest:
    return InvalidRequest(
        f"{what} that this release does not know (at most {PATH_COUNT_MAX} paths, msgpack scalars only); "
        "install one release of tallymark on the driver and on every executor"
    )
