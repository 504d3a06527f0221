"""Frames on a byte stream: a length of four bytes, big-endian, then that many bytes. Sans-I/O."""

from tallymark.engine.errors import InvalidRequest

LENGTH_BYTES = 4


def encode_frame(body: bytes) -> bytes:
    """Return the body with its length in front.

    The sender knows the receiver's limit; only the format's limit is checked here.
    """
    return len(body).to_bytes(LENGTH_BYTES, "big") + body


class FrameReader:
    """Splits a stream of bytes into the frames that ``encode_frame`` made, however the bytes arrive.

    Between two calls it contains less than one frame of at most ``limit`` bytes.
    """

    def __init__(self, limit: int, *, setting: str) -> None:
        """Take as ``setting`` the setting that an error names where ``limit`` is too low."""
        self._limit = limit
        self._setting = setting
        self._buffer = bytearray()

    def raise_limit(self, limit: int, *, setting: str) -> None:
        """Accept frames up to this size from the next one on: the peer is authenticated."""
        self._limit, self._setting = limit, setting

    def feed(self, data: bytes) -> list[bytes]:
        """Return the frames that these bytes complete.

        Raises:
            InvalidRequest: an announced frame is larger than the limit. Nothing of it is kept, and the stream is
                unusable,
                since the start of its next frame is unknown.
        """
        self._buffer += data
        frames, start = [], 0
        while (end := self._frame_end(start)) is not None:
            frames.append(bytes(self._buffer[start + LENGTH_BYTES : end]))
            start = end
        del self._buffer[:start]
        return frames

    def _frame_end(self, start: int) -> int | None:
        """Return the end of the frame that starts at ``start``, if it is complete."""
        body = start + LENGTH_BYTES
        if len(self._buffer) < body:
            return None
        size = int.from_bytes(self._buffer[start:body], "big")
        if size > self._limit:
            self._buffer.clear()
            raise InvalidRequest(
                f"a frame of {size} bytes: at most {self._limit} are taken ({self._setting}); "
                "send less at once, or raise the setting"
            )
        return body + size if len(self._buffer) >= body + size else None
