"""Executors whose Python lacks something: one line says which Python, on which host, and what to do."""

import platform
import shutil
import venv
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.packaging.distribution import Environment, build
from tests.support.jars import java
from tests.support.process import printed_by
from tests.support.storage import exactly_the_committed_files

pytestmark = [pytest.mark.spark, pytest.mark.release]

BARE, EMPTY, OLDER = "without the package", "without Arrow, which Spark's own worker wants", "with another release"

Words = Mapping[str, str]


@pytest.fixture(scope="module")
def pythons(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Path]:
    folder = tmp_path_factory.mktemp("pythons")
    venv.create(folder / "empty", symlinks=True)
    older = Environment.make(folder / "older")
    older.install(build(folder / "distribution").wheel)
    front = older.site_packages / "tallymark/__init__.py"
    shutil.rmtree(front.parent / "__pycache__", ignore_errors=True)
    front.write_text(front.read_text().replace('__version__ = "', '__version__ = "0.0.1+'))
    return {BARE: Environment.make(folder / "bare").python, EMPTY: folder / "empty/bin/python", OLDER: older.python}


@pytest.fixture(scope="module")
def words(pythons: Mapping[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Words:
    """What a write says whose tasks run each of them."""
    java()
    tables = tmp_path_factory.mktemp("tables")
    said = printed_by("tests.system.spark.bare_executors_program", tables, *pythons.values())
    for table in tables.iterdir():
        assert exactly_the_committed_files(table) == set()
    return dict(zip(pythons, said[-len(pythons) :], strict=True))


def begins(python: Path) -> str:
    where = f"Python {platform.python_version()} at {python} on host {platform.node()}"
    return f"JobFailed: Spark gave up on a task: {where} "


def test_a_python_without_the_package_is_named(pythons: Mapping[str, Path], words: Words) -> None:
    assert words[BARE].startswith(begins(pythons[BARE]) + "cannot import tallymark (No module named 'tallymark'); ")
    assert "--py-files" in words[BARE]


def test_a_python_without_arrow_which_sparks_own_worker_wants_is_named(
    pythons: Mapping[str, Path], words: Words
) -> None:
    assert words[EMPTY].startswith(begins(pythons[EMPTY]) + "cannot import py")
    assert "executors need what the driver has" in words[EMPTY]


def test_another_release_on_executors_is_named(pythons: Mapping[str, Path], words: Words) -> None:
    older = pythons[OLDER]
    assert words[OLDER].startswith(begins(older) + "has tallymark 0.0.1+")
    assert f"at {older.parents[1]}/lib/" in words[OLDER]
    assert ", and the driver has " in words[OLDER]
