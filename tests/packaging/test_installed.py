"""The wheel alone, in an environment of its own, far from the sources."""

import json

import pytest

from tests.packaging.distribution import ROOT
from tests.support.jars import QUICK_JAVA, java

EXAMPLES = ROOT / "examples"


def test_what_is_imported_is_the_wheel_and_nothing_else_was_installed(installed, tmp_path):
    where = installed.run("-c", "import tallymark.engine; print(tallymark.engine.__file__)", cwd=tmp_path).strip()
    assert where == str(installed.site_packages / "tallymark/engine/__init__.py")
    found = {path.name for path in installed.site_packages.iterdir() if path.name != "__pycache__"}
    assert {name.partition("-")[0] for name in found} == {"tallymark", "third_parties.pth"}


def test_import_needs_neither_spark_nor_arrow_nor_a_storage(installed, tmp_path):
    heavy = ("pyspark", "pyarrow", "trio", "rich", "click", "tallymark.engine", "tallymark.backends")
    program = f"import sys, tallymark; print([name for name in {heavy} if name in sys.modules])"
    assert installed.run("-c", program, cwd=tmp_path) == "[]\n"


def test_wheel_runs_the_marker_engine_example(installed, tmp_path):
    assert "1000 markers are durable" in installed.run(EXAMPLES / "marker_engine.py", tmp_path / "table", cwd=tmp_path)


def test_wheel_runs_the_process_pool_example_and_its_command_reads_the_table(installed, tmp_path):
    printed = installed.run(EXAMPLES / "process_pool.py", tmp_path / "table", cwd=tmp_path)
    assert printed.startswith("4000 rows in 48 files, 48 markers")
    status = json.loads(installed.run(installed.folder / "bin/tallymark", "status", "table", "--json", cwd=tmp_path))
    assert (status["rows"], status["files"], status["open_instants"]) == (4000, 48, [])


def test_wheel_runs_the_benchmark_harness_with_a_server_of_its_own(installed, tmp_path):
    assert "beside dict" in installed.run(
        "-m", "tallymark.bench", "backends", "--url", "memory:", "--quick", cwd=tmp_path
    )
    questions = installed.run("-m", "tallymark.bench", "--help", cwd=tmp_path)
    assert ("markers" in questions, "writes" in questions) == (True, False)
    program = "from tallymark.bench.loopback import server\nwith server() as url: print(url)"
    assert installed.run("-c", program, cwd=tmp_path).startswith("http://127.0.0.1:")


@pytest.mark.spark
def test_wheel_runs_the_pyspark_example(installed, tmp_path):
    java()
    spark = {"SPARK_LOCAL_IP": "127.0.0.1", **QUICK_JAVA}
    printed = installed.run(EXAMPLES / "pyspark_job.py", tmp_path / "table", cwd=tmp_path, **spark)
    assert "replaced 2 files of 1 partition at position 2" in printed
