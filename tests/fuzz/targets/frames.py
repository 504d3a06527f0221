"""A stream of frames, however it is cut. The first byte says into how long runs."""

from tallymark.engine.errors import InvalidRequest
from tallymark.engine.rpc.frames import LENGTH_BYTES, FrameReader, encode_frame

LIMIT = 64


def seeds() -> list[bytes]:
    stream = b"".join(encode_frame(b"x" * size) for size in (0, 1, LIMIT, 7))
    return [bytes([run]) + stream for run in (0, 1, 3, 200)]


def target(data: bytes) -> bool:
    run, stream = 1 + data[0] if data else 1, data[1:]
    reader, frames = FrameReader(LIMIT, setting="limit"), []
    try:
        for start in range(0, len(stream), run):
            frames += reader.feed(stream[start : start + run])
    except InvalidRequest:
        is_refused = True
    else:
        is_refused = False
    told, is_too_large = cut(stream)
    assert is_refused == is_too_large
    assert frames == (told[: len(frames)] if is_refused else told)
    return not is_refused


def cut(stream: bytes) -> tuple[list[bytes], bool]:
    """The frames of a stream, and whether one after them is too large: as the format says it."""
    frames = []
    while len(stream) >= LENGTH_BYTES:
        size = int.from_bytes(stream[:LENGTH_BYTES], "big")
        if size > LIMIT:
            return frames, True
        if len(stream) < LENGTH_BYTES + size:
            break
        frames.append(stream[LENGTH_BYTES : LENGTH_BYTES + size])
        stream = stream[LENGTH_BYTES + size :]
    return frames, False
