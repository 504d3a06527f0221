"""Access to a Spark session in both forms: with its own JVM, or as a client of Spark Connect."""

from py4j.protocol import Py4JError
from pyspark.sql import DataFrame, SparkSession

from tallymark.engine.errors import InvalidRequest
from tallymark.engine.settings import MarkerKind, MarkerSettings, ServiceSettings, SharedServiceSettings


def is_connected(part: DataFrame | SparkSession) -> bool:
    """Return whether it is a session of Spark Connect: tasks reach its driver, which is another process, but not this
    one.
    """
    return type(part).__module__.startswith("pyspark.sql.connect.")


def refuse_ended(session: SparkSession) -> None:
    """Raise InvalidRequest where the session was stopped, or its Java process has ended."""
    if not is_connected(session) and _has_ended(session):
        raise InvalidRequest(
            "the Spark session of df has ended: it was stopped, or its Java process is gone; start another, and "
            "create df again"
        )


def _has_ended(session: SparkSession) -> bool:
    try:
        return bool(session._jsparkSession.sparkContext().isStopped())
    except (Py4JError, OSError):  # the JVM has ended
        return True


def marker_settings(
    session: SparkSession,
    asked: MarkerKind | MarkerSettings | None,
    service: ServiceSettings | SharedServiceSettings,
) -> MarkerSettings:
    """Return the requested settings; by default batched, and direct where tasks cannot reach the service.

    Raises:
        InvalidRequest: batched markers over Spark Connect, by a service in this process.
    """
    settings = MarkerSettings(kind=asked) if isinstance(asked, str) else asked
    if not is_connected(session) or isinstance(service, SharedServiceSettings):
        return settings or MarkerSettings()
    if settings is not None and settings.kind == "batched":
        raise InvalidRequest(
            "markers='batched' needs tasks to reach this process, and those of Spark Connect cannot; "
            "leave markers out, say markers='direct', or name a service outside of this process: "
            "service=SharedServiceSettings(url=...)"
        )
    return settings or MarkerSettings(kind="direct")
