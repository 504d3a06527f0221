"""The memory backend keeps the contract, as either family of stores."""

import pytest

from tallymark.backends import Backend
from tallymark.backends.memory import MemoryBackend
from tallymark.backends.testing import ObjectStoreConformance, StagingConformance
from tests.support.loops import on_virtual_time


class MemoryPeek:
    """The dict itself."""

    def __init__(self, *, has_staging: bool) -> None:
        self._store = MemoryBackend(has_staging=has_staging)
        self.backend: Backend = self._store

    def objects(self) -> dict[str, bytes]:
        return {path: data for path, (data, _) in self._store._objects.items()}

    def directories(self) -> list[str]:
        return []


class TestMemoryAsObjectStore(ObjectStoreConformance):
    @pytest.fixture
    def peek(self):
        return MemoryPeek(has_staging=False)


class TestMemoryWithStaging(StagingConformance):
    @pytest.fixture
    def peek(self):
        return MemoryPeek(has_staging=True)


@on_virtual_time
async def test_the_stores_clock_can_be_given():
    moments = iter([5.0, 7.5])
    backend = MemoryBackend(now=lambda: next(moments))
    await backend.put("a", b"")
    await backend.put_new("b", b"")
    assert [entry.modified async for entry in backend.list("")] == [5.0, 7.5]


@on_virtual_time
async def test_its_repr_says_how_much_it_holds():
    backend = MemoryBackend()
    await backend.put("a", b"")
    assert repr(backend) == "<MemoryBackend 1 objects>"
