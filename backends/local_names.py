"""Naming of a whole, synced file, also over a network that loses answers."""

import errno
import os
from pathlib import Path

from tallymark.backends.local_errors import NO_LINKS, no_links, no_object


def link(source: Path, target: Path) -> None:
    """Give the file its name, or raise FileExistsError if another file has it.

    Over NFS a response can be lost and the link be requested again; then the server reports a taken name, which this
    process has taken. The file under the name shows that: no other call links or names this source.
    """
    ours = os.lstat(source)
    try:
        os.link(source, target)
    except OSError as error:
        if _is_file(target, ours):
            return
        if isinstance(error, FileExistsError) and os.path.lexists(target) and not target.is_file():
            raise no_object(target) from error
        if error.errno in NO_LINKS:
            raise no_links(source, target, error) from error
        raise


def replace(source: Path, target: Path) -> None:
    """Give the file its name by rename(2), which over NFS can report it missing after this process has renamed it."""
    ours = os.lstat(source)
    try:
        os.replace(source, target)  # noqa: PTH105 - beside os.link
    except OSError as error:
        if _is_file(target, ours):
            return
        if error.errno == errno.EXDEV:
            raise no_links(source, target, error) from error
        raise


def _is_file(path: Path, facts: os.stat_result) -> bool:
    try:
        return os.path.samestat(os.lstat(path), facts)
    except OSError:
        return False
