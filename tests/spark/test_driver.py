"""Where tasks are told to call the driver, for each way in which Spark can be told."""

import http.client
import socket
from pathlib import Path
from urllib.parse import quote

import anyio
import pytest
from pyspark.sql import SparkSession

import tallymark
from tallymark import InvalidRequest, ServiceSettings
from tallymark.backends.local import LocalBackend
from tallymark.spark_glue.driver import PORT, of_settings
from tests.engine.serve.hudi_table import put_state, put_table
from tests.engine.serve.test_hudi_markers import FOLDER, marker

HOST, BIND = "spark.driver.host", "spark.driver.bindAddress"

CLUSTER, KUBERNETES = "spark://master:7077", "k8s://https://api:6443"


@pytest.mark.parametrize("master", ["local", "local[2]", "local[*,4]", "local-cluster[2,1,1024]"])
def test_tasks_of_this_machine_use_its_loopback_interface_and_a_port_that_was_fixed(master: str) -> None:
    told = {HOST: "192.0.2.7", BIND: "0.0.0.0"}
    assert of_settings(master, told.get) == ServiceSettings(host="127.0.0.1")
    assert of_settings(master, {PORT: "7079"}.get).port == 7079


@pytest.mark.parametrize(
    ("master", "told", "listens", "called"),
    [
        (CLUSTER, {HOST: "driver.example"}, "driver.example", "driver.example"),
        ("yarn", {HOST: "driver.example"}, "driver.example", "driver.example"),
        (KUBERNETES, {HOST: "driver.example"}, "driver.example", "driver.example"),
        (KUBERNETES, {HOST: "job-driver-svc.jobs.svc", BIND: "10.1.2.3"}, "10.1.2.3", "job-driver-svc.jobs.svc"),
        (CLUSTER, {HOST: "[2001:db8::7]", BIND: "[::]"}, "::", "2001:db8::7"),
        (CLUSTER, {}, "127.0.0.1", "127.0.0.1"),
    ],
)
def test_executors_call_the_driver_by_the_name_that_spark_gives_them_and_it_may_listen_elsewhere(
    master: str, told: dict[str, str], listens: str, called: str
) -> None:
    assert of_settings(master, told.get) == ServiceSettings(host=listens, advertised_host=called)
    assert of_settings(master, {**told, PORT: "7079"}.get).port == 7079


@pytest.mark.parametrize("port", ["-1", "any", "", "70790"])
def test_what_is_no_port_is_refused(port: str) -> None:
    with pytest.raises(InvalidRequest, match="port"):
        of_settings(CLUSTER, {PORT: port}.get)


async def _prepare(table: Path) -> None:
    await put_table(LocalBackend(table), 9)
    await put_state(LocalBackend(table), 9, "inflight")


def test_the_driver_takes_markers_of_hudis_writers_for_the_block(spark: SparkSession, tmp_path: Path) -> None:
    anyio.run(_prepare, tmp_path / "t")
    folder, name = quote(f"{tmp_path}/t/{FOLDER}"), quote(marker(1))
    with tallymark.hudi.markers(spark, roots=[str(tmp_path)]) as options:
        host, port = (options[f"hoodie.filesystem.view.remote.{key}"] for key in ("host", "port"))
        connection = http.client.HTTPConnection(host, int(port), timeout=30)
        connection.request("POST", f"/v1/hoodie/marker/create?markerdirpath={folder}&markername={name}")
        assert connection.getresponse().read() == b"true"
        connection.close()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((host, int(port)), timeout=30)
    assert [path.name for path in (tmp_path / "t" / FOLDER).glob("MARKERS1*")] == ["MARKERS1073741824"]
