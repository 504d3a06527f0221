"""``tallymark serve``: a service for jobs whose tasks cannot reach their driver, and for Hudi's own writers."""

import signal
import sys
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tallymark.backends.options import StorageOptions
from tallymark.cli.asking import failing_plainly
from tallymark.cli.serve_tokens import token
from tallymark.cli.storage import storage_option
from tallymark.engine.serve.settings import HudiServiceSettings, JobServiceSettings, PageSettings, ServeSettings

if TYPE_CHECKING:
    from tallymark.engine.serve.config import ServeConfig

_PROCESS, _JOBS, _HUDI, _PAGE = ServeSettings(), JobServiceSettings(), HudiServiceSettings(), PageSettings()
_PORT = click.IntRange(0, 65535)
_FILE = click.Path(dir_okay=False, path_type=Path)


@click.group(invoke_without_command=True)
@click.option("--config", type=_FILE, help="A file in TOML with everything below; what is given here counts before it.")
@click.option("--check-config", is_flag=True, help="State what is wrong with the configuration, and serve nothing.")
@click.option(
    "--root",
    "roots",
    multiple=True,
    metavar="URL",
    help="A table, or a folder of tables, that is served; repeatable. Nothing else is touched.",
)
@click.option("--host", help=f"Address that drivers and tasks connect to.  [default: {_JOBS.host}]")
@click.option("--port", type=_PORT, help=f"Port for drivers; 0 takes a free one.  [default: {_JOBS.port}]")
@click.option("--task-port", type=_PORT, help=f"Port for tasks; 0 takes a free one.  [default: {_JOBS.task_port}]")
@click.option("--advertised-host", help="Address that tasks connect to, where it is not the one that drivers use.")
@click.option("--tls-cert", type=_FILE, help="Certificate of the service and its chain, in PEM.")
@click.option("--tls-key", type=_FILE, help="Key of the certificate, in PEM.")
@click.option("--tokens", type=_FILE, help="Tokens of drivers: 'tallymark serve token add' makes them.")
@click.option(
    "--secret",
    type=_FILE,
    help="File from which the keys of jobs are derived, the same for all services of these roots. It is created if it "
    "does not exist; by default in the user's folder for state.",
)
@click.option(
    "--drain-s",
    type=float,
    help=f"Seconds between SIGTERM, when /readyz begins to fail, and the end.  [default: {_JOBS.drain_s:g}]",
)
@click.option(
    "--memory-mb",
    type=click.IntRange(min=16),
    help=f"MiB for tables, views and markers; beyond it the least recently used are released.  "
    f"[default: {_PROCESS.memory_mb}]",
)
@click.option("--log-format", type=click.Choice(["text", "json"]), help="Form of log lines.  [default: text]")
@click.option(
    "--log-level",
    type=click.Choice(["debug", "info", "warning", "error"]),
    help="The least severe lines that are logged.  [default: info]",
)
@click.option("--audit-log", type=_FILE, help="File for the lines about requests of drivers, and for no others.")
@click.option("--hudi-host", help=f"Address that Hudi's writers connect to.  [default: {_HUDI.host}]")
@click.option(
    "--hudi-port", type=_PORT, help=f"Port that they connect to; 0 takes a free one.  [default: {_HUDI.port}]"
)
@click.option(
    "--hudi-network",
    "hudi_networks",
    multiple=True,
    metavar="CIDR",
    help="Network whose clients are served, such as 10.1.0.0/16; repeatable. Needed for any address but this machine's "
    "own: Hudi's client sends no credentials.",
)
@click.option(
    "--hudi-views",
    metavar="HOST:PORT",
    help="A timeline server of Hudi that answers everything but markers. Without it Hudi's writers look themselves.",
)
@click.option("--page/--no-page", "page_enabled", default=None, help="Serve pages and REST.  [default: --page]")
@click.option("--page-host", help=f"Address that browsers and programs connect to.  [default: {_PAGE.host}]")
@click.option("--page-port", type=_PORT, help=f"Port of these; 0 takes a free one.  [default: {_PAGE.port}]")
@click.option(
    "--page-name",
    "page_hosts",
    multiple=True,
    metavar="HOST",
    help="Name by which they reach the service, without port, beside the address; repeatable. Others are refused.",
)
@click.option("--base-path", "page_base_path", metavar="PATH", help="Path of all pages, such as /lake.")
@click.option("--page-only", is_flag=True, hidden=True)
@storage_option("the roots do")
@click.pass_context
def serve(
    context: click.Context,
    /,
    config: Path | None,
    check_config: bool,
    roots: Sequence[str],
    options: StorageOptions,
    page_only: bool,
    **given: object,
) -> None:
    """Serve markers and lookups to jobs, markers to Hudi's own writers, and pages and REST to people and their tools,
    until SIGTERM or SIGINT.

    It holds no truth: end it at any moment, start it again, run two of one table. The guide "A service outside the
    driver" says how jobs name it, and "Hudi on Tallymark's markers" what to set in Hudi.
    """
    if context.invoked_subcommand is not None:
        return
    if config is None and not roots:
        raise click.UsageError("Missing option '--root', or '--config'.")
    import anyio

    if check_config:
        _check(config, roots, options, given)
        return
    from tallymark.engine.serve.descriptors import raise_descriptor_limit, within_descriptors
    from tallymark.engine.serve.logs import configure_logs

    with failing_plainly(as_json=False):
        configured = _configured(config, roots, options, given)
        configure_logs(configured.service)
        configured = within_descriptors(configured, raise_descriptor_limit())
        if page_only:
            from tallymark.engine.serve.page_process import run_page

            anyio.run(run_page, configured, click.echo, backend="trio")
            return
        anyio.run(_serve, configured, backend="trio")


def _configured(
    config: Path | None, roots: Sequence[str], options: StorageOptions, given: dict[str, object]
) -> "ServeConfig":
    from tallymark.engine.serve.config import load_config
    from tallymark.engine.serve.roots import Root

    said = {name: str(value) if isinstance(value, Path) else value for name, value in given.items()}
    said = {name: value for name, value in said.items() if value not in (None, ())}
    hudi = {name.removeprefix("hudi_"): value for name, value in said.items() if name.startswith("hudi_")}
    page = {name.removeprefix("page_"): value for name, value in said.items() if name.startswith("page_")}
    own = {field.name for field in fields(ServeSettings)}
    service = {name: value for name, value in said.items() if name in own}
    jobs = {name: value for name, value in said.items() if not name.startswith(("hudi_", "page_")) and name not in own}
    named = [Root(root, options) for root in roots]
    return load_config(config, roots=named, service=service, jobs=jobs, hudi=hudi, page=page)


def _check(path: Path | None, roots: Sequence[str], options: StorageOptions, given: dict[str, object]) -> None:
    from tallymark.engine.serve.config import ConfigErrors
    from tallymark.engine.serve.service import check_files

    try:
        config = _configured(path, roots, options, given)
        problems = check_files(config)
    except ConfigErrors as errors:
        problems = [f"{path or 'options'}: {problem}" for problem in errors.problems]
    for problem in problems:
        click.echo(f"tallymark: {problem}", err=True)
    if problems:
        sys.exit(1)
    click.echo(f"Nothing is wrong with {path or 'these options'}: {len(config.roots.places)} roots.")


async def _serve(config: "ServeConfig") -> None:
    import anyio

    from tallymark.engine.serve.page_process import PageProcess
    from tallymark.engine.serve.service import serving

    page = PageProcess(sys.argv[1:]) if config.page.enabled else None
    with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
        async with serving(config, page) as served:
            click.echo(f"Jobs at {served.jobs}")
            for place in served.hudi:
                click.echo(f"Markers for Hudi at {place}")
            if served.page is not None:
                click.echo(f"Page at {served.page}")
            click.echo(f"Tables below {', '.join(config.roots.places)}")
            if await anext(signals) == signal.SIGTERM:
                served.ending.set()
                if page is not None:
                    await page.end()
                with anyio.move_on_after(config.jobs.drain_s):
                    await anext(signals)
    click.echo("Ended.")


serve.add_command(token)
