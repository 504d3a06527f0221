"""Bytes and names of marker segments. Case ids in docstrings: Hudi's own tests, re-expressed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tallymark.engine.errors import CorruptObject, InvalidRequest
from tallymark.engine.markers.name import marker_line
from tallymark.engine.markers.segment import (
    BATCHED_TYPE,
    DIRECT_TYPE,
    FIRST_INCARNATION,
    INCARNATION_LIMIT,
    SEQUENCE_COUNT,
    claim_name,
    decode_segment,
    encode_segment,
    incarnation_of,
    is_segment,
    marker_folder,
    read_marker_type,
    segment_name,
    segment_number,
)

SEGMENTS = st.text(alphabet=st.characters(codec="utf-8", exclude_categories=["Cc"]), min_size=1, max_size=40)


def valid(path: str) -> bool:
    try:
        marker_line(path)
    except InvalidRequest:
        return False
    return True


LINES = st.builds(
    marker_line,
    path=st.lists(SEGMENTS, min_size=1, max_size=3).map("/".join).filter(valid),
    io=st.sampled_from(["CREATE", "MERGE", "APPEND"]),
)


@given(lines=st.lists(LINES))
def test_a_segment_comes_back_as_it_was_written(lines):
    assert decode_segment(encode_segment(lines), source="MARKERS0") == lines


@given(lines=st.lists(LINES, min_size=1), data=st.data())
def test_a_torn_segment_keeps_its_finished_lines_and_nothing_else(lines, data):
    whole = encode_segment(lines)
    torn = whole[: data.draw(st.integers(0, len(whole) - 1))]
    kept = decode_segment(torn, source="MARKERS0")
    assert kept == lines[: len(kept)]
    assert len(kept) == torn.count(b"\n")


@pytest.mark.parametrize(
    "data",
    [
        b"a.marker.CREATE,b.marker.CREATEc.marker.CREATE\n",
        b"a.parquet\n",
        b"a.marker.CREATE\n\n",
        b"\xff.marker.CREATE\n",
        b"../a.marker.CREATE\n",
        b"a.marker.DELETE\n",
    ],
)
def test_a_line_that_is_no_marker_name_is_an_error_and_never_skipped(data):
    with pytest.raises(CorruptObject, match="MARKERS7 is not a marker segment"):
        decode_segment(data, source="MARKERS7")


SEQUENCES = st.integers(0, SEQUENCE_COUNT - 1)


@given(incarnation=st.integers(0, INCARNATION_LIMIT - 1), sequence=SEQUENCES)
def test_a_segment_number_tells_its_incarnation_and_fits_a_signed_32_bit_integer(incarnation, sequence):
    name = segment_name(incarnation, sequence)
    assert segment_number(f"folder/{name}") == int(name.removeprefix("MARKERS")) < 2**31
    assert is_segment(name)
    assert incarnation_of(name) == incarnation_of(claim_name(incarnation)) == incarnation


@given(places=st.lists(st.tuples(st.integers(FIRST_INCARNATION, INCARNATION_LIMIT - 1), SEQUENCES)))
def test_names_sort_as_numbers_do_from_the_first_incarnation_on(places):
    """A merge's segment lies behind all that it replaces, also for a listing: decision 0011."""
    assert [segment_name(*place) for place in sorted(places)] == sorted(segment_name(*place) for place in places)


@pytest.mark.parametrize("name", ["MARKERS.type", "MARKERS", "MARKERS1.tmp", "xMARKERS1", "p/MARKERS1", "staged/x"])
def test_other_files_are_no_segments(name):
    assert not is_segment(name)
    assert incarnation_of(name) is None


@pytest.mark.parametrize(
    ("data", "kind"),
    [(None, None), (b"", None), (b"DIRECT", DIRECT_TYPE), (b"TIMELINE_SERVER_BASED", BATCHED_TYPE)],
)
def test_the_type_file_is_read_as_hudi_reads_it(data, kind):
    """M7. Absent and empty are the same."""
    assert read_marker_type(data) == kind


def test_a_type_file_that_says_something_else_is_an_error():
    with pytest.raises(CorruptObject, match="neither"):
        read_marker_type(b"ROCKET")


@pytest.mark.parametrize("instant", ["", "a/b", "..", "a b", "a\n"])
def test_an_instant_that_could_leave_its_folder_is_refused(instant):
    with pytest.raises(InvalidRequest, match="letters, digits"):
        marker_folder(instant)
