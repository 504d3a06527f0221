"""Bytes and names of marker segments, and of the markers in them. Case ids in docstrings: Hudi's own tests."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tallymark.backends.contract import check_path
from tallymark.backends.errors import InvalidPath
from tallymark.engine.errors import CorruptObject, InvalidRequest
from tallymark.engine.markers.name import MarkerName, check_line, check_lines, marker_line
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
    is_whole,
    marker_folder,
    merge_segments,
    read_marker_type,
    segment_name,
    segment_number,
)

IO = ["CREATE", "MERGE", "APPEND"]


PARTS = st.text(st.characters(exclude_categories=["Cc", "Cs"], exclude_characters="/"), min_size=1, max_size=40).filter(
    lambda part: part not in (".", "..") and ".marker." not in part
)
PATHS = st.lists(PARTS, min_size=1, max_size=5).map("/".join)
LINES = st.builds(marker_line, path=PATHS, io=st.sampled_from(IO))


@given(batches=st.lists(st.lists(LINES, min_size=1), min_size=1))
def test_a_segment_comes_back_as_it_was_written_and_merged_ones_are_one_also_with_one_of_an_earlier_release(batches):
    lines = [line for batch in batches for line in batch]
    first, *others = [encode_segment(batch) for batch in batches]
    for old in (first, first.partition(b"\n")[2]):
        assert merge_segments([old, *others]) == encode_segment(lines)
        assert decode_segment(old, source="MARKERS7") == batches[0]


@given(lines=st.lists(LINES, min_size=1, max_size=5), data=st.data())
def test_a_segment_that_lacks_its_end_or_has_a_flipped_bit_is_damaged(lines, data):
    whole = encode_segment(lines)
    short = [whole[:size] for size in range(len(whole))]
    bits = data.draw(st.lists(st.integers(0, 8 * len(whole) - 1), min_size=50, unique=True)) + list(range(8 * 16))
    for damaged in short + [_flipped(whole, bit) for bit in bits]:
        assert not is_whole(damaged), "or a merge would make a segment of it that states nothing about the damage"
        with pytest.raises(CorruptObject, match=r"MARKERS1073741824 is (a damaged|not a) marker segment"):
            decode_segment(damaged, source="MARKERS1073741824")


def _flipped(data: bytes, bit: int) -> bytes:
    return data[: bit // 8] + bytes([data[bit // 8] ^ 1 << bit % 8]) + data[bit // 8 + 1 :]


@given(lines=st.lists(LINES, min_size=1), data=st.data())
def test_a_segment_that_is_rewritten_keeps_its_finished_lines(lines, data):
    whole = encode_segment(lines).partition(b"\n")[2]
    torn = whole[: data.draw(st.integers(0, len(whole) - 1))]
    kept = decode_segment(torn, source="MARKERS0", rewritten=True)
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
    with pytest.raises(CorruptObject, match=r"MARKERS7 is (a damaged|not a) marker segment"):
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


@given(PATHS, st.sampled_from(IO))
@example("a b/%2F/,'\"", "CREATE")
@example("a/marker.CREATE", "CREATE")
@example("\u2028\u0085", "CREATE")
def test_a_name_survives_being_written_and_read(path, io):
    name = MarkerName.of(path, io)
    text = str(name)
    assert "\n" not in text
    assert MarkerName.parse(text) == name
    assert (name.path, name.io) == (path, io)


@given(st.text(max_size=60) | st.builds("{}.marker.{}".format, st.text(max_size=40), st.sampled_from(IO)))
def test_any_text_is_a_name_that_writes_itself_or_a_corrupt_object(text):
    try:
        name = MarkerName.parse(text)
    except CorruptObject:
        return
    assert str(name) == text


LEAVING = ["", "/a", "a/", "a//b", "..", "../a", "a/../b", "a/./b"]
BREAKING = ["a\nb", "a\rb", "a\0", "\x7f", "\ud800"]
LONGEST = "a" * (1024 - len(".marker.CREATE"))


@pytest.mark.parametrize(
    ("path", "io", "reason"),
    [
        *((path, "CREATE", "marker name") for path in LEAVING + BREAKING),
        *((path, "CREATE", "rename the file") for path in ["a.marker.CREATE", "a.marker.b/c", "x/.marker./y"]),
        (LONGEST + "a", "CREATE", "1024 bytes"),
        *(("a", io, "CREATE, MERGE, APPEND") for io in ["", "create", "DELETE", "CREATE\n"]),
    ],
    ids=lambda value: ascii(value[:20]),
)
def test_a_name_that_leaves_the_table_breaks_a_line_or_could_be_another_is_refused(path, io, reason):
    with pytest.raises(InvalidRequest, match=reason):
        MarkerName.of(path, io)
    with pytest.raises(CorruptObject, match="is not a marker name"):
        MarkerName.parse(f"{path}.marker.{io}")


def test_a_name_is_as_long_as_an_object_of_its_own_may_be():
    assert MarkerName.of(LONGEST).path == LONGEST


def test_names_sort_by_path():
    assert min(MarkerName("b"), MarkerName("a", "MERGE"), MarkerName("a")) == MarkerName("a", "CREATE")


ODD = st.lists(st.sampled_from([*"a./ \né", ".marker.", "CREATE", "MERGE", "..", "\x7f", "a" * 1010]), max_size=10)


@given(ODD.map("".join) | ODD.map(lambda parts: "".join([*parts, ".marker.CREATE"])))
@example("a.parquet")
@example("a.marker")
@example("a.marker.")
@example(".marker.CREATE")
def test_a_line_that_a_glance_tells_good_is_good_by_the_rules(text):
    path, infix, io = text.rpartition(".marker.")
    is_good = bool(infix) and io in IO and ".marker." not in path and is_path(path) and is_path(text)
    if is_good:
        assert check_line(text) == marker_line(path, io) == text
    else:
        with pytest.raises(CorruptObject):
            check_line(text)


MARKED = ODD.map(lambda parts: "".join([*parts, ".marker.CREATE"]).replace("\n", ""))


@given(st.lists(MARKED, min_size=1))
@example(["a.marker.CREATE", "a.marker.b.marker.CREATE"])
@example(["a.marker.CREATE", "a" * 1011 + ".marker.CREATE"])
@example(["a.marker.CREATE", "a/../b.marker.CREATE"])
def test_lines_are_good_together_if_each_is_by_itself(lines):
    try:
        good = [check_line(line) for line in lines]
    except CorruptObject:
        with pytest.raises(CorruptObject):
            check_lines("\n".join(lines))
    else:
        assert check_lines("\n".join(lines)) == good


def is_path(text: str) -> bool:
    try:
        check_path(text)
    except InvalidPath:
        return False
    return True
