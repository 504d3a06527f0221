"""Files that a browser loads beside a page: style, script, icon. Read from the package once."""

import functools
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files

MEDIA_TYPES = {
    "page.css": "text/css; charset=utf-8",
    "page.js": "text/javascript; charset=utf-8",
    "htmx.min.js": "text/javascript; charset=utf-8",
    "idiomorph.min.js": "text/javascript; charset=utf-8",
    "favicon.svg": "image/svg+xml",
    "LICENSE": "text/plain; charset=utf-8",
}


@dataclass(frozen=True, slots=True)
class Asset:
    content: bytes
    media_type: str
    version: str
    """Hash of the content. Pages have it in the asset's URL, so that a browser may cache the asset permanently."""


@functools.cache
def assets() -> Mapping[str, Asset]:
    """Return the assets by name: what ``{base_path}/static/`` serves, and nothing else."""
    folder = files(__package__) / "static"
    found = {}
    for name, media_type in MEDIA_TYPES.items():
        content = (folder / name).read_bytes()
        found[name] = Asset(content, media_type, hashlib.sha256(content).hexdigest()[:12])
    return found
