"""Stores for the tests of jobs and of what surrounds them, and virtual time for their async tests."""

import inspect

import pytest

from tests.engine.jobs.scene import FAMILIES, Store
from tests.support.loops import on_virtual_time


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run an async test on virtual time, unless ``on_both_loops`` has made it two ordinary ones."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    on_virtual_time(pyfuncitem.obj)(**{name: pyfuncitem.funcargs[name] for name in pyfuncitem._fixtureinfo.argnames})
    return True


@pytest.fixture(params=FAMILIES, ids=["staging", "no_staging"])
def store(request: pytest.FixtureRequest) -> Store:
    """A new store, once of each family."""
    return Store(has_staging=request.param)


@pytest.fixture
def staged() -> Store:
    """A new store with staging."""
    return Store(has_staging=True)


@pytest.fixture
def unstaged() -> Store:
    """A new store without staging."""
    return Store(has_staging=False)
