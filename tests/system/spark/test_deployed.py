"""Each way in which docs/deploying.md brings Tallymark to executors, by ``spark-submit`` to a standalone cluster.

The executors' Python is another than the driver's each time, and what it may find of third parties is counted out.
"""

import json
import os
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pyspark
import pytest

from tests.packaging import needs
from tests.packaging.distribution import Environment, build
from tests.support.jars import QUICK_START, java
from tests.support.ports import free_port
from tests.support.process import BOUND_S, ROOT
from tests.support.services.standalone import standalone_cluster
from tests.support.storage import exactly_the_committed_files

pytestmark = [pytest.mark.spark, pytest.mark.release]

HOME = Path(pyspark.__file__).parent

FIXED = {
    "spark.ui.enabled": "false",
    "spark.cores.max": "1",
    "spark.executor.memory": "512m",
    "spark.driver.extraJavaOptions": QUICK_START,
    "spark.executor.extraJavaOptions": QUICK_START,
    "spark.pyspark.driver.python": sys.executable,
}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    java()
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("PYTHONPATH", raising=False)  # what the tests find by it, executors are not to find
        with standalone_cluster(tmp_path_factory.mktemp("cluster")) as url:
            yield url


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("distribution")).wheel


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory, wheel: Path) -> Environment:
    """A Python that has the package, and what tasks need."""
    environment = Environment.make(tmp_path_factory.mktemp("installed") / "venv", only=(*needs.TASK, *needs.LOOP))
    environment.install(wheel)
    return environment


def submit(cluster: str, table: Path, *options: str, **conf: str) -> dict[str, Any]:
    """What the job prints."""
    settings = {**FIXED, **{name.replace("__", "."): value for name, value in conf.items()}}
    done = subprocess.run(
        [
            HOME / "bin/spark-submit",
            *("--master", cluster),
            *(word for name, value in settings.items() for word in ("--conf", f"{name}={value}")),
            *options,
            *(ROOT / "tests/system/spark/deployed_job.py", table),
        ],
        env={
            **{name: value for name, value in os.environ.items() if not name.startswith("PYSPARK_")},
            "SPARK_HOME": str(HOME),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "PYTHONWARNINGS": "ignore",
        },
        capture_output=True,
        text=True,
        timeout=BOUND_S,
    )
    assert done.returncode == 0, done.stderr[-5000:]
    told: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    assert (told["modes"], told["rows"]) == (["batched", "direct"], 200)
    assert len(exactly_the_committed_files(table)) == 8
    return told


def test_it_is_installed_where_executors_run_and_the_driver_has_another_name_than_its_address(
    cluster: str, installed: Environment, tmp_path: Path
) -> None:
    told = submit(
        cluster,
        tmp_path / "t",
        spark__pyspark__python=str(installed.python),
        spark__driver__bindAddress="0.0.0.0",
        spark__driver__host="127.0.0.4",
        spark__tallymark__service__port=str(free_port()),
    )
    assert told["found"] == [[str(installed.python), f"{installed.site_packages}/tallymark/__init__.py"]]


def test_executors_unpack_an_environment_from_archives(cluster: str, installed: Environment, tmp_path: Path) -> None:
    archive = tmp_path / "environment.tar.gz"
    with tarfile.open(archive, "w:gz", compresslevel=1) as tar:
        tar.add(installed.folder, arcname=".")
    told = submit(
        cluster,
        tmp_path / "t",
        *("--archives", f"{archive}#environment"),
        spark__pyspark__python="./environment/bin/python",
    )
    for python, package in told["found"]:
        assert python.endswith("/environment/bin/python")
        assert python.removesuffix("bin/python") in package
        assert not python.startswith(str(installed.folder))


def test_a_zip_of_the_package_is_enough_where_executors_have_what_tasks_need(
    cluster: str, wheel: Path, tmp_path: Path
) -> None:
    package = tmp_path / "tallymark.zip"
    with ZipFile(wheel) as from_wheel, ZipFile(package, "w") as target:  # what pip install --target lays out
        for name in from_wheel.namelist():
            if name.startswith("tallymark/"):
                target.writestr(name, from_wheel.read(name))
    lacking = Environment.make(tmp_path / "lacking", only=(*needs.TASK, *needs.LOOP))
    told = submit(cluster, tmp_path / "t", *("--py-files", str(package)), spark__pyspark__python=str(lacking.python))
    [(python, found)] = told["found"]
    assert python == str(lacking.python)
    assert found.endswith("tallymark.zip/tallymark/__init__.py")
