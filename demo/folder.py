"""The folder of the demo's table: removed and made again, but only if it is such a table."""

import shutil
from pathlib import Path


def emptied(folder: Path) -> Path:
    """The absolute path of the folder, with nothing there.

    Raises:
        ValueError: in this locale Python cannot tell other programs the folder's name.
        FileExistsError: something is there that is no table of Tallymark's. It was not touched.
    """
    folder = folder.expanduser().resolve()
    try:
        str(folder).encode()
    except UnicodeEncodeError as error:
        raise ValueError("this locale cannot spell the folder's name; set LC_ALL=C.UTF-8, or name another") from error
    if folder.exists() and not _may_go(folder):
        raise FileExistsError(
            f"{folder} is there and is no table of this demo; name a new folder: python -m demo <folder>"
        )
    shutil.rmtree(folder, ignore_errors=True)
    return folder


def _may_go(folder: Path) -> bool:
    properties = folder / ".hoodie" / "hoodie.properties"
    if properties.is_file():
        return "tallymark.format" in properties.read_text("utf-8", errors="replace")
    return folder.is_dir() and not any(folder.iterdir())
