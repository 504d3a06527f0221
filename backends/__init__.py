"""Storage: one contract (``contract``), one file a store, and ``open_backend`` from a URL to one of them."""

from tallymark.backends.contract import Backend, Entry, NewFile
from tallymark.backends.errors import (
    AlreadyExists,
    BackendError,
    InvalidPath,
    NotFound,
    NotPermitted,
    TallymarkError,
    Unavailable,
)
from tallymark.backends.open import open_backend

__all__ = [
    "open_backend",
    "Backend",
    "Entry",
    "NewFile",
    "TallymarkError",
    "BackendError",
    "NotFound",
    "AlreadyExists",
    "NotPermitted",
    "InvalidPath",
    "Unavailable",
]
