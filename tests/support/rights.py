"""Storage that this process may not write, also where the tests run as root."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

NOBODY = 65534


@contextmanager
def locked_folder() -> Iterator[Path]:
    """An empty folder that may be read and not written for the time of the block; root runs the block as nobody.

    It lies outside pytest's own folders, which only their owner may enter.
    """
    is_root = os.geteuid() == 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o555)
        if is_root:
            os.seteuid(NOBODY)
        try:
            yield folder
        finally:
            if is_root:
                os.seteuid(0)
            folder.chmod(0o755)
