import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.cli.scene import data_files, die_writing, write


@dataclass(frozen=True, slots=True)
class Abandoned:
    """A table that holds one committed month, and what a killed writer of months 1 and 2 has left."""

    folder: Path
    committed: set[str]
    """The data files of the commit, whose position is 1."""
    instant: str
    """The dead writer's."""


@pytest.fixture(scope="session")
def abandoned_once(tmp_path_factory: pytest.TempPathFactory) -> Abandoned:
    folder = tmp_path_factory.mktemp("abandoned") / "flights"
    write(folder, 1)
    committed = data_files(folder)
    instant = die_writing(folder, 1, 2)
    assert len(data_files(folder)) == 3
    return Abandoned(folder, committed, instant)


@pytest.fixture
def abandoned(abandoned_once: Abandoned, tmp_path: Path) -> Abandoned:
    """The test's own copy."""
    folder = shutil.copytree(abandoned_once.folder, tmp_path / "flights")
    return Abandoned(folder, abandoned_once.committed, abandoned_once.instant)
