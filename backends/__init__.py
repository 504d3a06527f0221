"""Storage: one contract (``contract``), one module per store, and ``open_backend``, which opens the store of a URL.

To add a store: CONTRIBUTING, "Add a backend in five steps".
"""

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
