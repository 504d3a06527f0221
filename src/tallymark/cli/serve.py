"""``tallymark serve``: a service for programs other than the tasks of a job."""

import signal
from collections.abc import Sequence
from functools import partial

import click

from tallymark.backends.options import StorageOptions
from tallymark.cli.asking import failing_plainly
from tallymark.cli.storage import storage_option
from tallymark.engine.settings import HudiServiceSettings

_DEFAULTS = HudiServiceSettings()


@click.command()
@click.option(
    "--root",
    "roots",
    multiple=True,
    required=True,
    metavar="URL",
    help="A table, or a folder of tables, that is served; repeatable. Nothing else is touched.",
)
@click.option("--hudi-host", default=_DEFAULTS.host, show_default=True, help="Address that Hudi's writers connect to.")
@click.option(
    "--hudi-port",
    type=click.IntRange(0, 65535),
    default=_DEFAULTS.port,
    show_default=True,
    help="Port that they connect to; 0 takes a free one.",
)
@click.option(
    "--hudi-network",
    "networks",
    multiple=True,
    metavar="CIDR",
    help="Network whose clients are served, such as 10.1.0.0/16; repeatable. Needed for any address but this machine's "
    "own: Hudi's client sends no credentials.",
)
@click.option(
    "--hudi-views",
    "views",
    metavar="HOST:PORT",
    help="A timeline server of Hudi that answers everything but markers. Without it Hudi's writers look themselves.",
)
@storage_option("the roots do")
def serve(
    roots: Sequence[str],
    hudi_host: str,
    hudi_port: int,
    networks: Sequence[str],
    views: str | None,
    options: StorageOptions,
) -> None:
    """Take markers for Hudi's own writers until SIGTERM or SIGINT.

    It holds no truth: end it at any moment, start it again, run two of one table. The guide "Hudi on Tallymark's
    markers" says what to set in Hudi.
    """
    import anyio

    with failing_plainly(as_json=False):
        settings = HudiServiceSettings(host=hudi_host, port=hudi_port, networks=tuple(networks), views=views)
        anyio.run(_serve, roots, settings, options, backend="trio")


async def _serve(roots: Sequence[str], settings: HudiServiceSettings, options: StorageOptions) -> None:
    import anyio

    from tallymark.engine.background import background_tasks
    from tallymark.engine.serve.hudi_service import serve_hudi

    with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
        async with background_tasks() as tasks:
            host, port = await tasks.start(partial(serve_hudi, roots, settings, options=options))
            click.echo(f"Markers for Hudi at {host}:{port}, for tables below {', '.join(roots)}.")
            async for _ in signals:
                break
    click.echo("Ended.")
