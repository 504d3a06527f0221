"""The stores of a view, and random changes to them."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random
from typing import Any

from tallymark.engine.settings import ViewSettings
from tallymark.engine.timeline.entry import DataFile
from tallymark.engine.views.block import pack_rows, unpack_rows
from tallymark.engine.views.open import open_store
from tallymark.engine.views.row import FileRow
from tallymark.engine.views.spillable_store import SpillableStore
from tallymark.engine.views.store import DamagedStore, ViewStore

STORES = ("memory", "spillable", "spillable, all waits", "spillable, none in memory", "key-value")
ON_DISK = STORES[1:]
MEMORY_BYTES = {"spillable": 600, "spillable, all waits": 900, "spillable, none in memory": 1}
"""Some ten rows: what a drawn history holds does not fit, and some partitions not even alone."""

PARTITIONS = ("month=1", "month=2", "month=1/day=1", "")


def settings_of(kind: str, folder: str, **views: Any) -> ViewSettings:
    """For such a store, whose files lie below a folder."""
    store: Any = kind.partition(",")[0]
    return ViewSettings(store=store, memory_bytes=MEMORY_BYTES.get(kind, 1 << 20), folder=folder, **views)


@contextmanager
def opened(kind: str, folder: Path | None = None) -> Iterator[ViewStore]:
    with tempfile.TemporaryDirectory() as own:
        settings = settings_of(kind, str(folder or own))
        store = _waiting(settings) if kind == "spillable, all waits" else open_store(settings)
        try:
            yield store
        finally:
            store.close()


def _waiting(settings: ViewSettings) -> SpillableStore:
    """What comes to a partition in the file waits in memory for as long as blocks give way to it."""
    size, folder = settings.memory_bytes, Path(settings.folder or "")
    return SpillableStore(folder, memory_bytes=size, waiting_bytes_max=size)


def row(name: str, partition: str = "month=1", added_at: int = 1, removed_at: int = 0) -> FileRow:
    return FileRow(DataFile(partition, name, rows=7, bytes=100), added_at, removed_at)


@dataclass
class Model:
    """What a store is to hold: each partition's rows by name. It forgets what a damaged store has lost."""

    held: dict[str, dict[str, FileRow]] = field(default_factory=dict)

    def blocks(self) -> dict[str, set[FileRow]]:
        return {partition: set(rows.values()) for partition, rows in self.held.items()}

    def lose(self, damage: DamagedStore) -> None:
        for partition in list(self.held) if damage.partitions is None else damage.partitions:
            self.held.pop(partition, None)


class Change:
    """A change to a store and to the model alike. Which one is drawn by what is held."""

    def __init__(self, random: Random, model: Model, number: int) -> None:
        self._model = model
        self._number = number
        self.partition = random.choice(PARTITIONS)
        self.verb = random.choice(("load", "add", "remove", "purge", "forget", "read") * 3 + ("forget all",))
        if self.partition not in model.held and self.verb in ("add", "remove"):
            self.verb = "load"
        names = [f"f{number}x{each}-0_{'n' * (each * 9)}.parquet" for each in range(random.randint(0, 5))]
        self.new = [row(name, self.partition, number) for name in names]
        live = [name for name, each in model.held.get(self.partition, {}).items() if not each.removed_at]
        self.names = random.sample(sorted(live), random.randint(0, len(live)))
        self.floor = random.randint(0, number)

    def apply(self, store: ViewStore) -> None:
        """To both; a store that is damaged tells what has to go. Raises DamagedStore."""
        try:
            self._apply(store)
        except DamagedStore as damage:
            self._model.lose(damage)
            store.forget(damage.partitions)
            raise

    def _apply(self, store: ViewStore) -> None:
        partition, held = self.partition, self._model.held
        match self.verb:
            case "load":
                store.load(partition, pack_rows(self.new))
                held[partition] = {each.file.name: each for each in self.new}
            case "add":
                store.add(partition, pack_rows(self.new))
                held[partition].update({each.file.name: each for each in self.new})
            case "remove":
                if not store.remove(partition, self.names, self._number):
                    raise DamagedStore("a file is not there", partitions=frozenset({partition}))
                for name in self.names:
                    held[partition][name] = replace(held[partition][name], removed_at=self._number)
            case "purge":
                store.purge(partition, self.floor)
                rows = held.get(partition, {})
                for name in [name for name, each in rows.items() if 0 < each.removed_at <= self.floor]:
                    del rows[name]
            case "forget":
                store.forget([partition])
                held.pop(partition, None)
            case "forget all":
                store.forget()
                held.clear()
            case _:
                check_rows(store, self._model, partition)


def check_rows(store: ViewStore, model: Model, partition: str) -> None:
    """What the store answers of a partition is what the model holds, and never changes. Raises DamagedStore."""
    assert store.contains(partition) == (partition in model.held)
    block = store.rows(partition)
    if block is None:
        assert partition not in model.held
        return
    assert type(block) is bytes
    rows = list(unpack_rows(block, partition))
    assert len(rows) == len(set(rows))
    assert set(rows) == set(model.held[partition].values())


def check_all(store: ViewStore, model: Model) -> None:
    """Raises DamagedStore."""
    for partition in PARTITIONS:
        check_rows(store, model, partition)
    assert set(store.partitions()) == set(model.held)
