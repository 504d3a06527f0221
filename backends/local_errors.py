"""Translation of operating-system errors: each names the disk, the rule and the remedy."""

import errno
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tallymark.backends.errors import (
    AlreadyExists,
    BackendError,
    InvalidPath,
    NotFound,
    NotPermitted,
    Unavailable,
)
from tallymark.backends.mounts import mount_of

NO_LINKS = frozenset({errno.EPERM, errno.EXDEV, errno.EMLINK, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS})
"""Errors of link(2) where a file system makes no hard links, or not between these two directories."""


@contextmanager
def translated(path: str, place: Path, *, missing: type[BackendError] = NotFound) -> Iterator[None]:
    """Translate errors on the way to ``place``, which stands for ``path``; ``missing`` is the error for a
    missing file.
    """
    try:
        yield
    except BackendError:
        raise
    except FileNotFoundError as error:
        raise missing(f"{path}: {error.filename} does not exist") from error
    except FileExistsError as error:
        raise AlreadyExists(f"{path} exists") from error
    except OSError as error:
        raise _meaning(path, place, error) from error


def no_links(source: Path, target: Path, error: OSError) -> NotPermitted:
    """Return the refusal of a link that no retry would make."""
    if error.errno == errno.EXDEV:
        rule = f"hard links are not possible between {_disk(source.parent)} and {_disk(target.parent)}"
    else:
        rule = f"{_disk(target.parent)} makes no hard links here ({error.strerror})"
    return NotPermitted(
        f"{target}: {rule}, and a table needs them; nothing was written. Put the table on one file system that has "
        "them, such as ext4 or xfs, into a directory that is not immutable (lsattr)"
    )


def no_object(target: Path) -> NotPermitted:
    """Return the refusal to name an object like a thing that is not one, and that neither a get nor a listing would
    show.
    """
    kind = "a directory" if target.is_dir() else "neither file nor directory"
    return NotPermitted(
        f"{target}: {kind} is where an object should be; nothing was written. Check what put it there, and move it away"
    )


def _meaning(path: str, place: Path, error: OSError) -> BackendError:
    named = error.filename2 or error.filename
    place = Path(os.fsdecode(named)) if isinstance(named, str | bytes) else place
    if error.errno in (errno.EACCES, errno.EPERM):
        return NotPermitted(f"{path}: {error.strerror}: {_rights(place)}; nothing was done. Check rights and path")
    if error.errno in (errno.EINVAL, errno.EILSEQ) and named is not None:
        return InvalidPath(f"path {path!r}: {_disk(place)} takes no such name; rename it")
    refusal = _REFUSALS.get(error.errno or 0)
    if refusal is not None:
        return refusal(path, place)
    return Unavailable(f"{path}: {error.strerror or error} on {_disk(place)}; the operation may have succeeded or not")


def _too_long(path: str, place: Path) -> BackendError:
    return InvalidPath(
        f"path {path!r} has a segment longer than {_disk(place)} takes, or is too long together with the root "
        f"({len(os.fsencode(place)):,} bytes); shorten it"
    )


def _full(path: str, place: Path) -> BackendError:
    return NotPermitted(f"{path}: {_disk(place)} is full{_free(place)}; nothing was written. Free space there")


def _over_quota(path: str, place: Path) -> BackendError:
    return NotPermitted(
        f"{path}: the quota of user {os.geteuid()} on {_disk(place)} is used up; nothing was written. Free space, or "
        "have the quota raised"
    )


def _read_only(path: str, place: Path) -> BackendError:
    return NotPermitted(
        f"{path}: {_disk(place)} is read-only; nothing was written. Mount it for writing; if it was, an error of the "
        "disk has made it read-only, and the kernel's log states which"
    )


def _too_large(path: str, place: Path) -> BackendError:
    return NotPermitted(
        f"{path} is larger than {_disk(place)} or this process's limit (ulimit -f) allows; nothing was written. "
        "Raise the limit, or write smaller files"
    )


def _no_directory(path: str, place: Path) -> BackendError:
    return NotPermitted(
        f"{path}: a file is where a directory is needed ({place}); nothing was done. Check rights and path, and move "
        "that file away"
    )


def _directory(_path: str, place: Path) -> BackendError:
    return no_object(place)


def _loop(path: str, place: Path) -> BackendError:
    return NotPermitted(
        f"{path}: symbolic links go round in circles on the way to {place}; nothing was done. Mend them"
    )


def _too_many_files(path: str, _place: Path) -> BackendError:
    return Unavailable(f"{path}: too many open files; raise the limit (ulimit -n)")


_REFUSALS: dict[int, Callable[[str, Path], BackendError]] = {
    errno.ENAMETOOLONG: _too_long,
    errno.ENOSPC: _full,
    errno.EDQUOT: _over_quota,
    errno.EROFS: _read_only,
    errno.EFBIG: _too_large,
    errno.ENOTDIR: _no_directory,
    errno.EISDIR: _directory,
    errno.ENOTEMPTY: _directory,
    errno.ELOOP: _loop,
    errno.EMFILE: _too_many_files,
    errno.ENFILE: _too_many_files,
}


def _disk(place: Path) -> str:
    return str(mount_of(place) or f"the file system of {place}")


def _free(place: Path) -> str:
    """Return how much is free: a disk can run out of files before it runs out of bytes."""
    for folder in (place, *place.parents):
        with suppress(OSError):
            left = os.statvfs(folder)
            return f" ({left.f_bavail * left.f_frsize:,} bytes and {left.f_favail:,} files are free)"
    return ""


def _rights(file: Path) -> str:
    """Return the owner and the rights of the file in question and of its directory."""
    owners = [owners for one in (file, file.parent) if (owners := _mode(one))]
    return f"this process is user {os.geteuid()}, and {', '.join(owners) or file}"


def _mode(file: Path) -> str | None:
    try:
        found = file.lstat()
    except OSError:
        return None
    sticky = ", where only owners replace and delete" if found.st_mode & stat.S_ISVTX and file.is_dir() else ""
    return f"{file} is {stat.filemode(found.st_mode)} of user {found.st_uid}{sticky}"
