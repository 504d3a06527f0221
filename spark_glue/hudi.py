"""Markers of Hudi's own writers, taken by this process for the duration of a block."""

from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from functools import partial

from anyio.from_thread import start_blocking_portal
from pyspark.sql import SparkSession

from tallymark.backends.options import StorageOptions
from tallymark.engine.background import background_tasks
from tallymark.engine.errors import InvalidRequest
from tallymark.engine.rpc.server import is_every_interface
from tallymark.engine.serve.settings import HudiServiceSettings
from tallymark.spark_glue.driver import driver_settings
from tallymark.spark_glue.session import is_connected


@contextmanager
def markers(
    spark: SparkSession,
    *,
    roots: Sequence[str],
    networks: Sequence[str] = (),
    options: StorageOptions | None = None,
    settings: HudiServiceSettings | None = None,
) -> Iterator[dict[str, str]]:
    """Take markers of Hudi's writers for the tables below ``roots``, and yield the options that their writes need.

        with tallymark.hudi.markers(spark, roots=["/data/lake"]) as hudi:
            df.write.format("hudi").options(**hudi).options(**yours).mode("append").save("/data/lake/flights")

    The service runs in this process, at the address by which tasks reach the driver. Where that is not this machine's
    own, ``networks`` are those of the executors, such as ``10.1.0.0/16``: Hudi's client sends no credentials. Markers
    that were acked outlive the process: Hudi's next writer rolls back by them. ``settings`` replaces the address, too.

    Raises:
        InvalidRequest: over Spark Connect, whose tasks cannot reach this process; or the roots or the address cannot
            be served.
        MissingExtra: ``tallymark[serve]`` is not installed.
    """
    if is_connected(spark):
        raise InvalidRequest(
            "tasks of Spark Connect cannot reach this process: run 'tallymark serve' where they can, and set in Hudi "
            "what the guide 'Hudi on Tallymark's markers' lists"
        )
    from tallymark.engine.serve.hudi_options import hudi_options

    driver = driver_settings(spark)
    own = settings or HudiServiceSettings(host=driver.host, port=0, networks=tuple(networks))
    with (
        start_blocking_portal("trio") as portal,
        portal.wrap_async_context_manager(_serving(roots, own, options)) as port,
    ):
        is_given = settings is not None and not is_every_interface(settings.host)
        yield hudi_options(own.host if is_given else driver.advertised_host or driver.host, port)


@asynccontextmanager
async def _serving(
    roots: Sequence[str], settings: HudiServiceSettings, options: StorageOptions | None
) -> AsyncIterator[int]:
    from tallymark.engine.serve.hudi_service import serve_hudi
    from tallymark.engine.serve.roots import Root, Roots

    served = Roots([Root(root, options) for root in roots])
    async with background_tasks() as tasks:
        _, port = await tasks.start(partial(serve_hudi, served, settings))
        yield port
