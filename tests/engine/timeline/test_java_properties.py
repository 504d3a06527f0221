from contextlib import suppress

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tallymark.engine.errors import CorruptObject
from tallymark.engine.timeline.java_properties import load, store


@given(st.dictionaries(st.text(st.characters(exclude_characters=" ", exclude_categories=["Cs"])), st.text()))
@example({"key": " \t value "})
def test_what_is_stored_is_loaded_again(properties: dict[str, str]) -> None:
    data = store(properties)
    assert data.isascii()
    assert load(data, source="here") == properties


@pytest.mark.parametrize(
    ("text", "properties"),
    [
        ("a=b", {"a": "b"}),
        ("a:b", {"a": "b"}),
        ("a b", {"a": "b"}),
        ("  a \t= \f b ", {"a": "b "}),
        ("a==b", {"a": "=b"}),
        ("a", {"a": ""}),
        ("=b", {"": "b"}),
        ("a=1\na=2", {"a": "2"}),
        ("#a=1\n ! b=2\n\n \t\nc=3", {"c": "3"}),
        ("a=1\rb=2\r\nc=3", {"a": "1", "b": "2", "c": "3"}),
        ("a=b\\\n   c\\\r\n\td", {"a": "bcd"}),
        ("a=b\\\n#c", {"a": "b#c"}),
        ("a=b\\\\\nc=d", {"a": "b\\", "c": "d"}),
        ("a=b\\\n\nc=d", {"a": "b", "c": "d"}),
        ("a=b\\", {"a": "b"}),
        ("\\\n#a\n\nb=c", {"b": "c"}),
        ("\\\n", {}),
        ("a\\=b\\:\\ c=d", {"a=b: c": "d"}),
        ("a=\\t\\n\\r\\f\\z\\u00fc\\uD83D\\ude42", {"a": "\t\n\r\fzü🙂"}),
        ("a=\xfc", {"a": "ü"}),
        ("", {}),
    ],
)
def test_lines_are_read_as_java_reads_them(text: str, properties: dict[str, str]) -> None:
    assert load(text.encode("latin-1"), source="here") == properties


@pytest.mark.parametrize("text", ["a=\\u00f", "a=\\uzzzz", "\\u=1", "a=\\ud83d"])
def test_a_broken_escape_is_corrupt_and_names_the_file(text: str) -> None:
    with pytest.raises(CorruptObject, match="here is damaged"):
        load(text.encode(), source="here")


@given(st.binary() | st.text("\\u0=:#! a\n\r\t").map(str.encode))
def test_any_bytes_are_loaded_or_corrupt(data: bytes) -> None:
    with suppress(CorruptObject):
        assert isinstance(load(data, source="here"), dict)
