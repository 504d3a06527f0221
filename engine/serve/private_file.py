"""Files that are written whole, for one user alone."""

import os
import secrets
from pathlib import Path


def write_unfinished(path: Path, data: bytes, *, like: os.stat_result | None = None) -> Path:
    """Write a durable file beside the path, under another name, and return it: to be linked or moved there.

    It has the owner and mode of ``like``, or is this user's alone. Raises OSError.
    """
    unfinished = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    with os.fdopen(os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        if like is not None:
            os.fchmod(file.fileno(), like.st_mode & 0o777)
            if (like.st_uid, like.st_gid) != (os.geteuid(), os.getegid()):
                os.fchown(file.fileno(), like.st_uid, like.st_gid)
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    return unfinished
