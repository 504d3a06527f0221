"""Listening address of the driver's service and its name for executors, from Spark's own settings."""

import os
from collections.abc import Callable

from pyspark.sql import SparkSession

from tallymark.engine.errors import InvalidRequest
from tallymark.engine.settings import ServiceSettings, SharedServiceSettings
from tallymark.spark_glue.session import is_connected

LOOPBACK = "127.0.0.1"

PORT = "spark.tallymark.service.port"
"""Setting with the port of the service, where a firewall or a pod's description has to name one; by default any free
port. It is not ``spark.driver.port``, which is Spark's own; one driver then runs one write at a time.
"""


SHARED = "spark.tallymark.service.url"
"""Setting with the URL of the service that ``tallymark serve`` runs, beside ``spark.tallymark.service.token`` and
``.ca``. Without it the environment variables of ``SharedServiceSettings`` count.
"""


def service_settings(session: SparkSession) -> ServiceSettings | SharedServiceSettings:
    """Return the service settings by the session's.

    Raises:
        InvalidRequest: the port or the URL is invalid.
    """
    if url := session.conf.get(SHARED, None):
        token, ca_file = (session.conf.get(f"spark.tallymark.service.{name}", None) for name in ("token", "ca"))
        return SharedServiceSettings(url=url, token=token, ca_file=ca_file)
    if (shared := SharedServiceSettings.of_environment(os.environ)) is not None:
        return shared
    if is_connected(session):
        return ServiceSettings()  # tasks put their own markers
    return driver_settings(session)


def driver_settings(session: SparkSession) -> ServiceSettings:
    """Return where this process, the driver, listens and how executors reach it. Raises InvalidRequest."""
    return of_settings(session.sparkContext.master or "", session.sparkContext.getConf().get)


def of_settings(master: str, setting: Callable[[str], str | None]) -> ServiceSettings:
    """Return the loopback interface while all tasks run on this machine, otherwise the address for executors.

    ``spark.driver.bindAddress`` is the address to listen on, ``spark.driver.host`` the one that executors use: they
    differ behind NAT or a Kubernetes service.
    """
    port = _port(setting(PORT))
    if master.startswith("local"):  # local-cluster, too
        return ServiceSettings(host=LOOPBACK, port=port)
    advertised = _bare(setting("spark.driver.host")) or LOOPBACK
    listening = _bare(setting("spark.driver.bindAddress")) or advertised
    return ServiceSettings(host=listening, advertised_host=advertised, port=port)


def _bare(host: str | None) -> str:
    """Return an IPv6 address without the brackets that Spark wants."""
    host = (host or "").strip()
    return host[1:-1] if host.startswith("[") and host.endswith("]") else host


def _port(said: str | None) -> int:
    if said is None:
        return 0
    if not said.strip().isdecimal():
        raise InvalidRequest(f"{PORT}={said!r}: give a port, 1 to 65535, or 0 for any")
    return int(said)
