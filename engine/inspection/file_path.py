"""The ways in which people name a file of a table."""

from urllib.parse import unquote

from tallymark.backends.contract import check_path
from tallymark.backends.errors import InvalidPath
from tallymark.engine.errors import InvalidRequest


def paths_below(url: str, text: str) -> tuple[str, ...]:
    """The relative paths that the text may mean, the likelier first: a relative path, or a URL below the table's.

    URLs come percent-encoded from Spark (``input_file_name``) and as they are from elsewhere: both are tried. ``s3a://``
    is ``s3://``; a local file may be named without ``file:``.

    Raises:
        InvalidRequest: it names the table itself, something outside of it, or nothing at all.
    """
    found = _relative(url, text)
    if not found:
        raise InvalidRequest(f"{text!r} does not lie below {url}; give a path below the table, or a file's name")
    try:
        return tuple(dict.fromkeys(check_path(path) for path in found))
    except InvalidPath as error:
        raise InvalidRequest(f"file {text!r}: {error}") from error


def _relative(url: str, text: str) -> list[str]:
    if not text.startswith("/") and ":/" not in text:
        return [text.removeprefix("./")]
    base = unquote(_plain(url)) if url.startswith("file:") else _plain(url)
    forms = [_plain(text), unquote(_plain(text))]
    if text.startswith("file:"):
        forms.reverse()
    prefix = f"{base.rstrip('/')}/"
    return [form.removeprefix(prefix) for form in forms if form.startswith(prefix)]


def _plain(url: str) -> str:
    """Schemes that mean one store in one form; a local path without any."""
    if url.startswith("file:"):
        return "/" + url.removeprefix("file:").lstrip("/")
    return f"s3{url.removeprefix('s3a')}" if url.startswith("s3a:") else url
