"""A side's Spark: its jars and settings, by the store that it writes to and the release that its Python has."""

from pathlib import Path

from tallymark.backends.errors import TallymarkError
from tallymark.bench.jars import fetch, jar_cache
from tallymark.bench.peers.writers import writer
from tallymark.bench.writes.bundle import Bundle, bundle_of
from tallymark.bench.writes.hands import Hands
from tallymark.bench.writes.place import WritePlace

_SPLIT_BYTES = 1 << 29


def session_conf(master: str) -> dict[str, str]:
    """Of every side. Otherwise Spark's defaults."""
    return {
        "spark.master": master,
        "spark.driver.memory": "1g",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.session.timeZone": "UTC",
        # One task a source file, whatever its size.
        "spark.sql.files.maxPartitionBytes": str(_SPLIT_BYTES),
        "spark.sql.files.openCostInBytes": str(_SPLIT_BYTES),
    }


def hands_for(name: str, place: WritePlace, *, master: str, python: str, logs: Path) -> Hands:
    """A worker that has not been started. Raises Unfit, or OSError or SubprocessError where it lacks what it needs."""
    paths = ":".join(map(str, _jars(name, place, bundle_of(python))))
    conf = {
        **session_conf(master),
        **place.conf,
        **writer(name).conf(logs / name),
        "spark.hadoop.hadoop.tmp.dir": str(logs / name / "hadoop"),
        "spark.driver.extraClassPath": paths,
        "spark.executor.extraClassPath": paths,
    }
    environment = {"SPARK_LOCAL_IP": "127.0.0.1", **place.environment}
    return Hands(name, conf, environment, logs / f"{place.kind}-{name}.log", python)


class Unfit(TallymarkError):
    """A side cannot run on the Spark that it is given."""


def _jars(name: str, place: WritePlace, bundle: Bundle) -> list[Path]:
    """Raises Unfit, or OSError or SubprocessError where they cannot be fetched."""
    side = writer(name)
    if not bundle.is_any(side.sparks):
        remedy = f"give --python {name}=PATH of a Python with pyspark=={side.sparks[-1]}.*"
        raise Unfit(f"its jars are for Spark {' or '.join(side.sparks)}, and this is {bundle.spark}: {remedy}")
    if place.connectors is not None and bundle.hadoop not in place.connectors:
        known = ", ".join(place.connectors)
        raise Unfit(f"its PySpark bundles Hadoop {bundle.hadoop}, whose connector is not among those known: {known}")
    wanted = [*place.jars, *(place.connectors or {}).get(bundle.hadoop, ()), *side.jars]
    return fetch(wanted, jar_cache()) if wanted else []
