"""The folder of a run, which goes at its end."""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Event

from tallymark.backends import BackendError, Unavailable

FOLDER = "tallymark-bench-"
"""Begins the name of what is made on a user's store."""

TRIES, PAUSE_S = 20, 0.1


@contextmanager
def new_folder(parent: Path) -> Iterator[Path]:
    """Below this one, and gone after the block. Raises Unavailable where it cannot be removed.

    An interrupted run may have left threads during a write: what they put there is removed, too.
    """
    folder = Path(tempfile.mkdtemp(prefix=FOLDER, dir=parent))
    try:
        yield folder
    finally:
        with removing(str(folder)):
            _remove(folder)


@contextmanager
def removing(url: str) -> Iterator[None]:
    """The block removes what was made below the URL. Raises Unavailable, with what is left to do, where it fails."""
    try:
        yield
    except (BackendError, OSError) as error:
        raise Unavailable(f"what was made below {url} could not be removed, please do ({error})") from error


def _remove(folder: Path) -> None:
    """Under another name first: who writes by the folder's own finds it no more, so that the emptying comes to an end.

    Writes in flight during the rename still land in it, and make another try necessary.
    """
    try:
        going = folder.rename(folder.with_name(f"{folder.name}-going"))
    except FileNotFoundError:
        return
    for _ in range(TRIES):
        with suppress(OSError):
            shutil.rmtree(going)
        if not going.exists():
            return
        Event().wait(PAUSE_S)
    shutil.rmtree(going)
