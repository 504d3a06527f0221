"""Errors of the storage contract, and the root of every error that Tallymark raises.

    TallymarkError                          engine/errors.py grows the other branches
    └── BackendError
        ├── NotFound            nothing is at that path                        (also FileNotFoundError)
        ├── AlreadyExists       the path is taken; nothing was written         (also FileExistsError)
        ├── NotPermitted        the store refuses; nothing was written         (also PermissionError)
        ├── InvalidPath         no store accepts such a path          (also ValueError)
        ├── NotInstalled        an optional library is missing                 (also ImportError)
        └── Unavailable         no answer: it may have happened, or may yet    (also OSError)
            └── Throttled           the store throttles

A backend translates its vendor's errors into these, in its own file, with ``raise ... from``.
"""


class TallymarkError(Exception):
    """The root of all errors of this library."""


class BackendError(TallymarkError):
    """Storage did not carry out the request."""


class NotFound(BackendError, FileNotFoundError):
    """Nothing is stored at the path."""


class AlreadyExists(BackendError, FileExistsError):
    """The path is taken; after a lost answer possibly by the caller's own earlier attempt."""


class NotPermitted(BackendError, PermissionError):
    """The store refuses the request permanently: rights, a read-only or full disk, a broken address."""


class InvalidPath(BackendError, ValueError):
    """The path is absolute, leaves the root, or contains what no store accepts."""


class NotInstalled(BackendError, ImportError):
    """A library that this store needs is not installed; the message names the extra that installs it."""


class Unavailable(BackendError, OSError):
    """The outcome is unknown: the request may have landed, may land later, or may be lost."""


class Throttled(Unavailable):
    """The store takes no more requests for the moment: retry after a pause."""
