"""The conformance suite on stores that break it; ``test_testing`` runs it and looks at what fails."""

import pytest

from tallymark.backends.memory import MemoryBackend
from tallymark.backends.testing import ObjectStoreConformance, Peek, StagingConformance
from tallymark.backends.testing.store import StoreTests
from tests.backends import broken


class _MemoryPeek(Peek):
    def __init__(self, backend: MemoryBackend) -> None:
        self.backend = self._store = backend

    def objects(self) -> dict[str, bytes]:
        return {path: bytes(data) for path, (data, _) in self._store._objects.items()}


class _Sizes(StoreTests):
    loops = ("trio",)
    promise_s_max = 20.0
    race_round_count = 3
    listed_object_count = 1_000
    large_object_bytes = (2_000_000,)
    store: type[MemoryBackend] = MemoryBackend

    def reopened(self, backend):
        return type(backend)(has_staging=backend.has_staging)


class ObjectStore(_Sizes, ObjectStoreConformance):
    @pytest.fixture
    def peek(self):
        return _MemoryPeek(self.store())


class Staging(_Sizes, StagingConformance):
    @pytest.fixture
    def peek(self):
        return _MemoryPeek(self.store(has_staging=True))


NEED_STAGING = {broken.PublishesAfterAClose, broken.PublishesAfterACloseAndAnOpen, broken.BeginsFilesWithoutStaging}

STORES = [
    store
    for name, store in vars(broken).items()
    if isinstance(store, type) and issubclass(store, MemoryBackend) and not name.startswith("_")
]

for store in STORES:
    family = Staging if store in NEED_STAGING else ObjectStore
    globals()[f"Test{store.__name__}"] = type(f"Test{store.__name__}", (family,), {"store": store})
