"""Where the driver's service listens, and what executors call it: as Spark's own settings say."""

from pyspark.sql import SparkSession

from tallymark.engine.settings import ServiceSettings
from tallymark.spark_glue.session import is_connected

LOOPBACK = "127.0.0.1"


def service_settings(session: SparkSession) -> ServiceSettings:
    """The loopback interface while all tasks run on this machine, else where executors reach the driver."""
    if is_connected(session):
        return ServiceSettings()  # tasks put their own markers
    conf = session.sparkContext.getConf()
    if (session.sparkContext.master or "").startswith("local"):
        return ServiceSettings(host=LOOPBACK)
    advertised = conf.get("spark.driver.host", LOOPBACK) or LOOPBACK
    return ServiceSettings(
        host=conf.get("spark.driver.bindAddress", advertised) or advertised, advertised_host=advertised
    )
