"""Errors of the storage contract, and the root of every error that Tallymark raises.

    TallymarkError                          engine/errors.py grows the other branches
    └── BackendError
        ├── NotFound            nothing is at that path                        (also FileNotFoundError)
        ├── AlreadyExists       the path is taken; nothing was written         (also FileExistsError)
        ├── NotPermitted        the store refuses; nothing was written         (also PermissionError)
        ├── InvalidPath         no store may be asked for such a path          (also ValueError)
        ├── NotInstalled        an optional library is missing                 (also ImportError)
        └── Unavailable         no answer: it may have happened, or may yet    (also OSError)
            └── Throttled           the store asks for fewer requests

A backend translates its vendor's errors into these, in its own file, with ``raise ... from``.
"""


class TallymarkError(Exception):
    """The root of all errors of this library."""


class BackendError(TallymarkError):
    """Storage did not do what it was asked."""


class NotFound(BackendError, FileNotFoundError):
    """Nothing is stored at the path."""


class AlreadyExists(BackendError, FileExistsError):
    """The path is taken, by whomever: after a lost answer it may be by the caller's own earlier attempt."""


class NotPermitted(BackendError, PermissionError):
    """The store refuses the request and will go on refusing: rights, a read-only or full disk, a broken address."""


class InvalidPath(BackendError, ValueError):
    """The path is absolute, leaves the root, or holds what no store may be given."""


class NotInstalled(BackendError, ImportError):
    """A library that this store needs is not installed; the message names the extra that brings it."""


class Unavailable(BackendError, OSError):
    """The outcome is unknown: the request may have landed, may land later, or may be lost."""


class Throttled(Unavailable):
    """The store takes no more requests for the moment: come back, and not at once."""
