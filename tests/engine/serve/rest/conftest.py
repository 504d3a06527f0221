"""The loop of these tests: trio, as of the service, on real time, since a local disk has worker threads."""

import inspect
from functools import partial

import pytest

from tallymark.backends.testing.loops import run_on
from tests.support.loops import REAL_S_MAX


def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    arguments = {name: pyfuncitem.funcargs[name] for name in pyfuncitem._fixtureinfo.argnames}
    run_on("trio", partial(pyfuncitem.obj, **arguments), s_max=REAL_S_MAX)
    return True
