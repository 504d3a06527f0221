"""The wrappers keep the contract: measuring over retrying over memory, as either family of stores."""

import pytest

from tallymark.backends import Backend, NotPermitted
from tallymark.backends.contract import folders_of
from tallymark.backends.measured import MeasuredBackend
from tallymark.backends.memory import MemoryBackend
from tallymark.backends.meter import RequestMeter
from tallymark.backends.retry import Retries
from tallymark.backends.retrying import RetryingBackend
from tallymark.backends.testing import ObjectStoreConformance, StagingConformance
from tallymark.backends.testing.store import StoreTests
from tests.backends.test_memory import MemoryPeek
from tests.support.loops import on_virtual_time


class _WrappedPeek(MemoryPeek):
    def __init__(self, *, has_staging: bool) -> None:
        super().__init__(has_staging=has_staging)
        self.backend: Backend = _wrapped(self._store)


class _Wrapped(StoreTests):
    """One loop: the wrappers await nothing but the store and a timeout of anyio."""

    loops = ("trio",)
    race_round_count = 5
    listed_object_count = 2_500
    large_object_bytes = (1_000_000,)

    def reopened(self, backend):
        return _wrapped(MemoryBackend(has_staging=backend.has_staging))


class TestWrappedAsObjectStore(_Wrapped, ObjectStoreConformance):
    @pytest.fixture
    def peek(self):
        return _WrappedPeek(has_staging=False)


class TestWrappedWithStaging(_Wrapped, StagingConformance):
    @pytest.fixture
    def peek(self):
        return _WrappedPeek(has_staging=True)


def _wrapped(store: Backend) -> Backend:
    return MeasuredBackend(RetryingBackend(store, Retries()), RequestMeter())


class _ListsNoFolders(MemoryBackend):
    folders = None  # type: ignore[assignment]  # a protocol that is checked at run time takes None for missing


@on_virtual_time
async def test_what_lists_no_folders_is_refused():
    with pytest.raises(NotPermitted, match="does not list folders"):
        await folders_of(_wrapped(_ListsNoFolders()), "")
