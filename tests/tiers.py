"""The test tiers: what each of ``nox -s tests``, ``tests-full`` and ``release`` runs.

``--tier fast`` draws a fifth of the examples, and runs one event loop of the two. ``--tier full`` runs what ``fast``
leaves out, and again, with half of the examples, what draws any, and what is watched by coverage; not what takes
minutes and repeats, on another store or for longer, what it runs itself. ``--tier release``, and no ``--tier``, run
everything that is named.
"""

from pathlib import Path

import pytest
from hypothesis import is_hypothesis_test

from tests.support.examples import load_profile

TIERS = ("fast", "full", "release")

SLOW_FIXTURES = frozenset({"dfs", "gcs"})
"""Servers that the fast tier does not start: the S3 store stands for all."""

SLOW_FOLDERS = ("bench", "connect", "hive", "spark", "system")
"""Folders of which, as of tests with a Spark, the fast tier runs what is marked ``smoke``."""

_TESTS = Path(__file__).parent


def choose(config: pytest.Config) -> None:
    """Draw the examples of the chosen tier. Call before test modules are imported."""
    load_profile(config.getoption("--tier") or "release")


def leave_out(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect the tests that the chosen tier leaves to another one."""
    tier = config.getoption("--tier") or "release"
    config.hook.pytest_deselected(items=[item for item in items if not _runs(tier, item)])
    items[:] = [item for item in items if _runs(tier, item)]


def _runs(tier: str, item: pytest.Item) -> bool:
    if tier == "release":
        return True
    if item.get_closest_marker("release"):
        return False
    return not _is_slow(item) if tier == "fast" else _is_slow(item) or _differs_in_full(item)


def _is_slow(item: pytest.Item) -> bool:
    if item.get_closest_marker("slow") is not None or _loop_of(item) == "asyncio":
        return True
    is_slow = any(item.path.is_relative_to(_TESTS / folder) for folder in SLOW_FOLDERS)
    if is_slow or item.get_closest_marker("spark") is not None:
        return item.get_closest_marker("smoke") is None
    return not SLOW_FIXTURES.isdisjoint(getattr(item, "fixturenames", ()))


def _differs_in_full(item: pytest.Item) -> bool:
    """Return whether a test that the fast tier has run draws more examples, or alone covers what it runs: one on trio
    has a twin on asyncio.
    """
    draws = is_hypothesis_test(getattr(item, "obj", None)) or item.get_closest_marker("draws") is not None
    return draws or (item.get_closest_marker("no_cover") is None and _loop_of(item) is None)


def _loop_of(item: pytest.Item) -> str | None:
    call = getattr(item, "callspec", None)
    return None if call is None else call.params.get("loop")
