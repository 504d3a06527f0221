"""The test tiers: what each of ``nox -s tests``, ``tests-full`` and ``release`` leaves to the next.

``--tier fast`` draws fewer examples, and runs one event loop of the two. ``--tier full`` leaves out what takes minutes
and repeats, on another store or for longer, what it runs itself. ``--tier release``, and no ``--tier``,
run everything that is named.
"""

import pytest

from tests.support.examples import load_profile

TIERS = ("fast", "full", "release")


SLOW_FIXTURES = frozenset({"dfs", "gcs"})
"""Servers that the fast tier does not start: the S3 store stands for all."""


def choose(config: pytest.Config) -> None:
    """Draw the examples of the chosen tier. Call before test modules are imported."""
    load_profile("fast" if config.getoption("--tier") == "fast" else "full")


def leave_out(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect the tests that the chosen tier leaves to a later one."""
    tier = config.getoption("--tier") or "release"
    config.hook.pytest_deselected(items=[item for item in items if not _runs(tier, item)])
    items[:] = [item for item in items if _runs(tier, item)]


def _runs(tier: str, item: pytest.Item) -> bool:
    if tier != "release" and item.get_closest_marker("release"):
        return False
    return tier != "fast" or not _is_slow(item)


def _is_slow(item: pytest.Item) -> bool:
    marked = item.get_closest_marker("slow") is not None
    return marked or _loop_of(item) == "asyncio" or not SLOW_FIXTURES.isdisjoint(getattr(item, "fixturenames", ()))


def _loop_of(item: pytest.Item) -> str | None:
    call = getattr(item, "callspec", None)
    return None if call is None else call.params.get("loop")
