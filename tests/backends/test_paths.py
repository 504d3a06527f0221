"""Which paths every store may be asked for: the quick look and the rules agree."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tallymark.backends import InvalidPath
from tallymark.backends.contract import PATH_BYTES_MAX, check_path

SEGMENTS = st.text(st.sampled_from(" .a/=é\n\x7f~"), max_size=6)


def is_allowed(path: str) -> bool:
    """The rules, said once more."""
    segments = path.split("/")
    printable = all(ord(character) >= 0x20 and character != "\x7f" for character in path)
    return printable and not {"", ".", ".."} & set(segments) and len(path.encode()) <= PATH_BYTES_MAX


@given(SEGMENTS)
@example("year=2013/a.parquet")
@example("a\n")
@example("a" * (PATH_BYTES_MAX + 1))
@example("é" * (PATH_BYTES_MAX // 2 + 1))
def test_a_path_is_taken_exactly_if_the_rules_allow_it(path):
    if is_allowed(path):
        assert check_path(path) == path
    else:
        with pytest.raises(InvalidPath, match="give a relative path"):
            check_path(path)
