"""A marker's name stays below its table, on one line, and is its own."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tallymark.backends.contract import check_path
from tallymark.backends.errors import InvalidPath
from tallymark.engine.errors import CorruptObject, InvalidRequest
from tallymark.engine.markers.name import MarkerName, check_line, check_lines, marker_line

IO = ["CREATE", "MERGE", "APPEND"]


def is_plain(segment: str) -> bool:
    return segment not in (".", "..") and ".marker." not in segment


segments = st.text(
    st.characters(exclude_categories=["Cc", "Cs"], exclude_characters="/"), min_size=1, max_size=40
).filter(is_plain)
paths = st.lists(segments, min_size=1, max_size=5).map("/".join)


@given(paths, st.sampled_from(IO))
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


@pytest.mark.parametrize(
    "path",
    ["", "/a", "a/", "a//b", "..", "../a", "a/../b", "a/./b", "a\nb", "a\rb", "a\0", "\x7f", "\ud800"],
    ids=ascii,
)
def test_a_path_that_leaves_the_table_or_breaks_a_line_is_refused(path):
    with pytest.raises(InvalidRequest, match="marker name"):
        MarkerName.of(path)
    with pytest.raises(CorruptObject):
        MarkerName.parse(f"{path}.marker.CREATE")


@pytest.mark.parametrize("path", ["a.marker.CREATE", "a.marker.b/c", "x/.marker./y"])
def test_a_path_with_the_infix_is_refused_for_it_could_be_another_name(path):
    with pytest.raises(InvalidRequest, match="rename the file"):
        MarkerName.of(path)


def test_a_name_is_as_long_as_an_object_of_its_own_may_be():
    longest = "a" * (1024 - len(".marker.CREATE"))
    assert MarkerName.of(longest).path == longest
    with pytest.raises(InvalidRequest, match="1024 bytes"):
        MarkerName.of(longest + "a")


@pytest.mark.parametrize("io", ["", "create", "DELETE", "CREATE\n"])
def test_another_io_is_refused_and_the_known_are_named(io):
    with pytest.raises(InvalidRequest, match="CREATE, MERGE, APPEND"):
        MarkerName.of("a", io)
    with pytest.raises(CorruptObject):
        MarkerName.parse(f"a.marker.{io}")


@pytest.mark.parametrize("text", ["", "a.parquet", "a.marker", "a.marker.", ".marker.CREATE", "markers.type"])
def test_what_lacks_a_part_is_no_marker_name(text):
    with pytest.raises(CorruptObject, match="is not a marker name"):
        MarkerName.parse(text)


def test_names_sort_by_path():
    assert min(MarkerName("b"), MarkerName("a", "MERGE"), MarkerName("a")) == MarkerName("a", "CREATE")


ODD = st.lists(st.sampled_from([*"a./ \né", ".marker.", "CREATE", "MERGE", "..", "\x7f", "a" * 1010]), max_size=10)


@given(ODD.map("".join) | ODD.map(lambda parts: "".join([*parts, ".marker.CREATE"])))
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
