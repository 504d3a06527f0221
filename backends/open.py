"""From a URL to a backend: the only place that names concrete stores."""

from collections.abc import Callable
from urllib.parse import unquote, urlsplit

from tallymark.backends.contract import Backend
from tallymark.backends.errors import InvalidPath


def open_backend(url: str) -> Backend:
    """The storage at a URL. No I/O.

    ``file:///data/flights`` or a plain path is a directory of this machine. ``memory:`` is a new, empty store that
    lives in this process.

    Raises:
        InvalidPath: a scheme that is not known here, or a URL that lacks what its scheme needs.
    """
    scheme = urlsplit(url).scheme if ":" in url and not url.startswith("/") else "file"
    try:
        opener = _OPENERS[scheme.lower()]
    except KeyError:
        known = ", ".join(f"{name}:" for name in sorted(_OPENERS))
        raise InvalidPath(f"{url!r}: unknown scheme {scheme!r}; known are {known} and plain paths") from None
    return opener(url)


def _open_local(url: str) -> Backend:
    from tallymark.backends.local import LocalBackend

    if not url.startswith("file:"):
        if not url:
            raise InvalidPath("the URL is empty; give a directory, such as '/data/flights'")
        return LocalBackend(url)
    parts = urlsplit(url)
    if parts.netloc not in ("", "localhost") or not parts.path.startswith("/"):
        raise InvalidPath(f"{url!r}: a file URL names an absolute path of this machine, such as 'file:///data/flights'")
    # "?" and "#" mean nothing in a file URL, and may stand in a directory's name.
    return LocalBackend(unquote(url.split(":", 1)[1].removeprefix("//" + parts.netloc)))


def _open_memory(url: str) -> Backend:
    from tallymark.backends.memory import MemoryBackend

    if url.rstrip("/") != "memory:":
        raise InvalidPath(f"{url!r}: a memory store has no name; say 'memory:' and pass the backend itself around")
    return MemoryBackend()


_OPENERS: dict[str, Callable[[str], Backend]] = {"file": _open_local, "memory": _open_memory}
