"""A machine without Java and without PySpark writes tables by the engine, and looks at them by the command line."""

from pathlib import Path

import pytest

from tests.packaging import needs
from tests.packaging.distribution import Distribution, Environment
from tests.packaging.test_zipped import WRITE

RUN = "import sys; from tallymark.cli import main; main(sys.argv[1:])"


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory, distribution: Distribution) -> Environment:
    """What ``pip install tallymark`` brings, and nothing else."""
    environment = Environment.make(
        tmp_path_factory.mktemp("plain") / "venv",
        only=(*needs.TASK, *needs.LOOP, *needs.OBJECT_STORES, *needs.COMMAND_LINE),
    )
    environment.install(distribution.wheel)
    return environment


@pytest.fixture(autouse=True)
def javaless(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.delenv("JAVA_HOME", raising=False)


def test_the_engine_writes_and_the_command_line_looks(plain: Environment, tmp_path: Path) -> None:
    assert plain.run("-c", WRITE, tmp_path / "table", cwd=tmp_path).split()[1:] == ["3", "2"]
    assert "none has left anything" in plain.run("-c", RUN, "status", tmp_path / "table", cwd=tmp_path)


def test_the_writer_of_dataframes_names_the_extra(plain: Environment, tmp_path: Path) -> None:
    program = "import tallymark\ntry: tallymark.write\nexcept tallymark.MissingExtra as error: print(error)"
    said = plain.run("-c", program, cwd=tmp_path)
    assert said == "PySpark is not installed; on a laptop: pip install 'tallymark[pyspark]'\n"


def test_what_is_no_dataframe_is_told_what_writes_it(installed: Environment, tmp_path: Path) -> None:
    program = (
        "import pyarrow as pa, sys, tallymark\n"
        "try: tallymark.write(pa.table({'id': [1]}), sys.argv[1], mode='append')\n"
        "except tallymark.InvalidRequest as error: print(error)"
    )
    said = installed.run("-W", "ignore", "-c", program, tmp_path / "table", cwd=tmp_path)
    assert said == (
        "df is a pyarrow.lib.Table; give a pyspark.sql.DataFrame. Without Spark, "
        "Arrow batches are written by open_table and write_task\n"
    )
    assert not (tmp_path / "table").exists()
