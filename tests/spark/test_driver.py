"""Where tasks are told to call the driver, for each way in which Spark can be told."""

import pytest

from tallymark import InvalidRequest, ServiceSettings
from tallymark.spark_glue.driver import PORT, of_settings

HOST, BIND = "spark.driver.host", "spark.driver.bindAddress"

CLUSTER = "spark://master:7077"


@pytest.mark.parametrize("master", ["local", "local[2]", "local[*,4]", "local-cluster[2,1,1024]"])
def test_tasks_of_this_machine_use_its_loopback_interface(master: str) -> None:
    told = {HOST: "192.0.2.7", BIND: "0.0.0.0"}
    assert of_settings(master, told.get) == ServiceSettings(host="127.0.0.1")


@pytest.mark.parametrize("master", [CLUSTER, "yarn", "k8s://https://api:6443"])
def test_executors_call_the_driver_by_the_name_that_spark_gives_them(master: str) -> None:
    found = of_settings(master, {HOST: "driver.example"}.get)
    assert (found.host, found.advertised_host, found.port) == ("driver.example", "driver.example", 0)


def test_where_to_listen_and_what_to_call_may_be_two_things() -> None:
    found = of_settings("k8s://https://api:6443", {HOST: "job-driver-svc.jobs.svc", BIND: "10.1.2.3", PORT: "7079"}.get)
    assert (found.host, found.advertised_host, found.port) == ("10.1.2.3", "job-driver-svc.jobs.svc", 7079)


def test_the_brackets_of_an_ipv6_address_are_sparks() -> None:
    told = {HOST: "[2001:db8::7]", BIND: "[::]"}
    found = of_settings(CLUSTER, told.get)
    assert (found.host, found.advertised_host) == ("::", "2001:db8::7")


def test_a_cluster_whose_driver_has_no_name_is_on_this_machine() -> None:
    told: dict[str, str] = {}
    assert of_settings(CLUSTER, told.get) == ServiceSettings(host="127.0.0.1", advertised_host="127.0.0.1")


def test_a_fixed_port_holds_for_local_tasks_too() -> None:
    assert of_settings("local[2]", {PORT: "7079"}.get).port == 7079


@pytest.mark.parametrize("port", ["-1", "any", "", "70790"])
def test_what_is_no_port_is_refused(port: str) -> None:
    with pytest.raises(InvalidRequest, match="port"):
        of_settings(CLUSTER, {PORT: port}.get)
