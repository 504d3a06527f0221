"""The folder of a run, which goes at its end."""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Event

from tallymark.bench.places.place import FOLDER, removing

TRIES, PAUSE_S = 20, 0.1


@contextmanager
def new_folder(parent: Path) -> Iterator[Path]:
    """Below this one, and gone after the block. Raises Unavailable where it cannot be removed.

    An interrupted run may have left threads amid a write: what they have put there meanwhile goes, too.
    """
    folder = Path(tempfile.mkdtemp(prefix=FOLDER, dir=parent))
    try:
        yield folder
    finally:
        with removing(str(folder)):
            _remove(folder)


def _remove(folder: Path) -> None:
    for _ in range(TRIES):
        with suppress(OSError):
            shutil.rmtree(folder)
        if not folder.exists():
            return
        Event().wait(PAUSE_S)
    shutil.rmtree(folder)
