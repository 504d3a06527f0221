"""Where tasks are told to call the driver, for each way in which Spark can be told."""

import pytest

from tallymark import InvalidRequest, ServiceSettings
from tallymark.spark_glue.driver import PORT, of_settings

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
