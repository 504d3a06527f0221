"""Stores for the tests of jobs and of what surrounds them, and virtual time for their async tests."""

import inspect
from functools import partial

import pytest

from tallymark.backends.testing.loops import LOOPS, run_on
from tests.engine.jobs.scene import FAMILIES, Store
from tests.support.loops import REAL_S_MAX, on_virtual_time


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run an async test on its ``loop``, or else on virtual time."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    arguments = {name: pyfuncitem.funcargs[name] for name in pyfuncitem._fixtureinfo.argnames}
    if "loop" in pyfuncitem.funcargs:
        run_on(str(pyfuncitem.funcargs["loop"]), partial(pyfuncitem.obj, **arguments), s_max=REAL_S_MAX)
    else:
        on_virtual_time(pyfuncitem.obj)(**arguments)
    return True


@pytest.fixture(params=LOOPS)
def loop(request: pytest.FixtureRequest) -> str:
    """An event loop. A module that uses this fixture for all its tests needs no ``on_both_loops`` at each of them."""
    return str(request.param)


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
