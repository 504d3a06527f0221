"""Factory of view stores: the only module that names those with a disk."""

import tempfile
from pathlib import Path

from tallymark.engine.errors import InvalidRequest
from tallymark.engine.settings import ViewSettings
from tallymark.engine.views.memory_store import MemoryStore
from tallymark.engine.views.store import ViewStore
from tallymark.engine.views.store_folder import sweep


def open_store(settings: ViewSettings) -> ViewStore:
    """Return a new, empty store. Files of an earlier process in its folder are removed, and never read.

    Raises:
        InvalidRequest: its folder is unusable.
        MissingExtra: it needs a library that is not installed.
    """
    if settings.store == "memory":
        return MemoryStore()
    folder = Path(tempfile.gettempdir() if settings.folder is None else settings.folder).absolute()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidRequest(
            f"setting folder={settings.folder!r}: a view's store is to have its files there, and {error}; name a "
            "folder of a local disk that this process may write to"
        ) from error
    sweep(folder)
    if settings.store == "spillable":
        from tallymark.engine.views.spillable_store import SpillableStore

        return SpillableStore(folder, memory_bytes=settings.memory_bytes)
    from tallymark.engine.views.key_value_store import KeyValueStore

    return KeyValueStore(folder, memory_bytes=settings.memory_bytes)
