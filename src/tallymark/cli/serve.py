"""``tallymark serve``: a service for jobs whose tasks cannot reach their driver, and for Hudi's own writers."""

import signal
from collections.abc import Sequence
from pathlib import Path

import click

from tallymark.backends.options import StorageOptions
from tallymark.cli.asking import failing_plainly
from tallymark.cli.storage import storage_option
from tallymark.engine.settings import HudiServiceSettings, JobServiceSettings

_JOBS, _HUDI = JobServiceSettings(), HudiServiceSettings()
_PORT = click.IntRange(0, 65535)


@click.command()
@click.option(
    "--root",
    "roots",
    multiple=True,
    required=True,
    metavar="URL",
    help="A table, or a folder of tables, that is served; repeatable. Nothing else is touched.",
)
@click.option("--host", default=_JOBS.host, show_default=True, help="Address that drivers and tasks connect to.")
@click.option("--port", type=_PORT, default=_JOBS.port, show_default=True, help="Port for drivers; 0 takes a free one.")
@click.option(
    "--task-port", type=_PORT, default=_JOBS.task_port, show_default=True, help="Port for tasks; 0 takes a free one."
)
@click.option("--advertised-host", help="Address that tasks connect to, where it is not the one that drivers use.")
@click.option(
    "--secret",
    type=click.Path(dir_okay=False, path_type=Path),
    help="File from which the keys of jobs are derived, the same for all services of these roots. It is created if it "
    "does not exist; by default in the user's folder for state.",
)
@click.option(
    "--drain-s",
    type=float,
    default=_JOBS.drain_s,
    show_default=True,
    help="Seconds between SIGTERM, when /readyz begins to fail, and the end.",
)
@click.option("--hudi-host", default=_HUDI.host, show_default=True, help="Address that Hudi's writers connect to.")
@click.option(
    "--hudi-port",
    type=_PORT,
    default=_HUDI.port,
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
    host: str,
    port: int,
    task_port: int,
    advertised_host: str | None,
    secret: Path | None,
    drain_s: float,
    hudi_host: str,
    hudi_port: int,
    networks: Sequence[str],
    views: str | None,
    options: StorageOptions,
) -> None:
    """Serve markers and lookups to jobs, and markers to Hudi's own writers, until SIGTERM or SIGINT.

    It holds no truth: end it at any moment, start it again, run two of one table. The guide "A service outside the
    driver" says how jobs name it, and "Hudi on Tallymark's markers" what to set in Hudi.
    """
    import anyio

    with failing_plainly(as_json=False):
        jobs = JobServiceSettings(
            host=host, port=port, task_port=task_port, advertised_host=advertised_host, drain_s=drain_s
        )
        hudi = HudiServiceSettings(host=hudi_host, port=hudi_port, networks=tuple(networks), views=views)
        anyio.run(_serve, roots, options, jobs, secret, hudi, backend="trio")


async def _serve(
    roots: Sequence[str],
    options: StorageOptions,
    jobs: JobServiceSettings,
    secret: Path | None,
    hudi: HudiServiceSettings,
) -> None:
    import anyio

    from tallymark.engine.serve.secret_file import default_path, read_or_create
    from tallymark.engine.serve.service import Service, serving

    service = Service(
        roots=roots, options=options, jobs=jobs, hudi=hudi, secret=read_or_create(secret or default_path())
    )
    with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
        async with serving(service) as served:
            click.echo(f"Jobs at http://{served.jobs}")
            click.echo(f"Markers for Hudi at {served.hudi}")
            click.echo(f"Tables below {', '.join(roots)}")
            if await anext(signals) == signal.SIGTERM:
                served.ending.set()
                with anyio.move_on_after(jobs.drain_s):
                    await anext(signals)
    click.echo("Ended.")
