"""Storage: one contract (``contract``), one file a store, and ``open_backend`` from a URL to one of them."""

from tallymark.backends.contract import Backend, Entry, NewFile
from tallymark.backends.errors import (
    AlreadyExists,
    BackendError,
    InvalidPath,
    NotFound,
    NotPermitted,
    TallymarkError,
    Throttled,
    Unavailable,
)
from tallymark.backends.open import open_backend
from tallymark.backends.options import StorageOptions

__all__ = [
    "open_backend",
    "StorageOptions",
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
    "Throttled",
]
