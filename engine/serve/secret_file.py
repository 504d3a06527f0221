"""The secret of a service, from which the keys of jobs are derived: a file that every instance of it is given."""

import os
import secrets
from contextlib import suppress
from pathlib import Path

from tallymark.engine.errors import InvalidRequest
from tallymark.engine.rpc.handshake import SECRET_BYTES_MIN
from tallymark.engine.serve.private_file import write_unfinished

SECRET_BYTES = 32


def default_path() -> Path:
    """Return the file in the user's folder for state (XDG base directories)."""
    state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(state) / "tallymark" / "serve.secret"


def read_or_create(path: Path) -> bytes:
    """Return the content of the file; if there is none, create it with random bytes, for this user alone.

    Raises InvalidRequest for one that is too short, that others may read, or that cannot be read or created. A file
    of root may be readable for its group: so systemd and Kubernetes give a secret to a process of another user.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        _create(path)
        if _others_may_read(path.stat()):
            raise InvalidRequest(f"{path}: others may read this secret; chmod 600 it")
        secret = path.read_bytes()
    except OSError as error:
        raise InvalidRequest(f"the secret of the service, {path}, cannot be read or created: {error}") from error
    if len(secret) < SECRET_BYTES_MIN:
        raise InvalidRequest(
            f"{path} has {len(secret)} bytes; a secret has at least {SECRET_BYTES_MIN} random ones: delete the file to "
            "get a new one"
        )
    return secret


def _others_may_read(status: os.stat_result) -> bool:
    is_given_by_root = status.st_uid == 0 != os.geteuid()
    return bool(status.st_mode & (0o037 if is_given_by_root else 0o077))


def _create(path: Path) -> None:
    """Create the file whole, unless it exists: another instance may start at this moment."""
    if path.exists():
        return
    unfinished = write_unfinished(path, secrets.token_bytes(SECRET_BYTES))
    try:
        with suppress(FileExistsError):
            os.link(unfinished, path)
    finally:
        unfinished.unlink()
