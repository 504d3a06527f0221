import pytest
from hypothesis import given
from hypothesis import strategies as st

from tallymark.engine.errors import InvalidRequest
from tallymark.engine.rpc.frames import FrameReader, encode_frame

bodies = st.lists(st.binary(max_size=40), max_size=8)


@given(bodies, st.data())
def test_frames_come_out_as_they_went_in_however_the_bytes_are_cut(sent: list[bytes], data: st.DataObject) -> None:
    stream = b"".join(map(encode_frame, sent))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=12)))
    reader = FrameReader(40, setting="frame_bytes")
    received = [
        frame
        for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True)
        for frame in reader.feed(stream[start:end])
    ]
    assert received == sent


@given(st.binary(max_size=200))
def test_any_bytes_are_frames_within_the_limit_or_refused(data: bytes) -> None:
    reader = FrameReader(16, setting="frame_bytes")
    try:
        frames = reader.feed(data)
    except InvalidRequest:
        return
    assert all(len(frame) <= 16 for frame in frames)


def test_an_oversize_frame_is_refused_by_its_length_alone_naming_size_limit_and_setting() -> None:
    reader = FrameReader(1024, setting="ServiceSettings.frame_bytes")
    with pytest.raises(InvalidRequest, match=r"1025 bytes.*1024.*ServiceSettings\.frame_bytes"):
        reader.feed((1025).to_bytes(4, "big"))


def test_a_raised_limit_holds_for_the_next_frame() -> None:
    reader = FrameReader(3, setting="handshake_bytes")
    assert reader.feed(encode_frame(b"abc")) == [b"abc"]
    reader.raise_limit(4, setting="frame_bytes")
    assert reader.feed(encode_frame(b"abcd")) == [b"abcd"]
