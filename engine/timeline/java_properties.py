"""The file format of ``java.util.Properties``, after its class documentation: ISO-8859-1, one ``key=value`` a line."""

import re
from collections.abc import Iterator

from tallymark.engine.errors import CorruptObject

_NATURAL_LINE = re.compile(r"\r\n|\r|\n")
_SPACE = " \t\f"
_ENTRY = re.compile(r"((?:[^\\=: \t\f]|\\.)*)[ \t\f]*[=:]?[ \t\f]*(.*)", re.DOTALL)
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.))", re.DOTALL)
_NAMED_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


def store(properties: dict[str, str]) -> bytes:
    """Return one ASCII line per property, in the given order and without a date. Keys contain no spaces."""
    return "".join(f"{_escaped(key)}={_escaped(value)}\n" for key, value in properties.items()).encode("ascii")


def load(data: bytes, *, source: str) -> dict[str, str]:
    """Return the properties that ``store``, or Java, wrote; for a repeated key, its last value.

    Raises CorruptObject, naming ``source``.
    """
    properties = {}
    for line in _logical_lines(data.decode("latin-1")):
        entry = _ENTRY.fullmatch(line)
        assert entry is not None, "only a lone backslash at the end would not match, and that continues the line"
        try:
            properties[_unescaped(entry[1])] = _unescaped(entry[2])
        except ValueError as error:
            raise CorruptObject(f"{source} is damaged: {line[:80]!r}: {error}") from error
    return properties


def _escaped(text: str) -> str:
    escaped = re.sub(r"[\\=:#!]|^ ", r"\\\g<0>", text)
    return re.sub(r"[^ -~]", _code_units, escaped)


def _code_units(character: re.Match[str]) -> str:
    units = character[0].encode("utf-16-be")
    return "".join(f"\\u{units[at]:02X}{units[at + 1]:02X}" for at in range(0, len(units), 2))


def _logical_lines(text: str) -> Iterator[str]:
    """Yield the lines without comments and blank ones; a line that ends in a lone backslash continues in the next."""
    begun = ""
    for natural in _NATURAL_LINE.split(text):
        line = natural.lstrip(_SPACE)
        if not begun and (not line or line[0] in "#!"):
            continue
        line = begun + line
        is_continued = (len(line) - len(line.rstrip("\\"))) % 2 == 1
        begun = line[:-1] if is_continued else ""
        if not is_continued:
            yield line
    if begun:
        yield begun


def _unescaped(text: str) -> str:
    """Return the text without escapes. Raises ValueError for an escape without its digits, and for half a surrogate
    pair.
    """
    return _ESCAPE.sub(_character, text).encode("utf-16", "surrogatepass").decode("utf-16")


def _character(escape: re.Match[str]) -> str:
    code, letter = escape.groups()
    if code is not None:
        return chr(int(code, 16))
    if letter == "u":
        raise ValueError("\\u lacks the four digits of a character")
    return _NAMED_ESCAPES.get(letter, letter)
