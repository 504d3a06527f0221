"""Storage for tasks, and the loop of the tests of jobs."""

import pytest

from tallymark.backends import Backend
from tallymark.backends.memory import MemoryBackend
from tests.engine.jobs.conftest import pytest_pyfunc_call
from tests.engine.tasks.scene import local, memory

__all__ = ["pytest_pyfunc_call"]


@pytest.fixture
def storage() -> MemoryBackend:
    """A memory store without staging."""
    return memory(has_staging=False)


@pytest.fixture(params=["staging", "no staging", "local"])
def backend(request, tmp_path) -> Backend:
    """Storage of each kind that a task publishes on."""
    return local(tmp_path) if request.param == "local" else memory(has_staging=request.param == "staging")
