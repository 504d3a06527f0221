"""Command line: ``python -m tallymark.bench``. Imports nothing heavy before a question runs."""

import functools
import signal
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import click

from tallymark.backends.options import StorageOptions
from tallymark.bench.command import json_option, run_question, storage_option, svg_option
from tallymark.bench.markers.command import markers

EVIDENCE = ("writes", "killed", "sizing", "views", "history", "upserts", "commits")
"""Questions of the repository that are not in the wheel: they compare Tallymark with other writers and servers."""


@click.group(context_settings={"help_option_names": ["-h", "--help"]}, invoke_without_command=True)
@click.pass_context
def main(context: click.Context) -> None:
    """Measure Tallymark beside the alternatives, in one run on your own machine and storage."""
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


@main.command()
@click.option(
    "--url",
    "urls",
    multiple=True,
    metavar="URL",
    help="Measure on this store, in a new folder that is removed at the end; repeatable. Without it: memory, a "
    "directory in memory, one on disk, and the S3 stand-in.",
)
@storage_option
@click.option("--seconds", type=click.FloatRange(min=0, min_open=True), help="About how long it takes. [default: 90]")
@click.option("--rounds", type=click.IntRange(min=2), help="The most samples of each side. [default: 201]")
@click.option("--quick", is_flag=True, help="Check that everything works: 10 seconds, 21 rounds, no large files.")
@json_option
@svg_option
def backends(
    urls: tuple[str, ...],
    options: StorageOptions,
    seconds: float | None,
    rounds: int | None,
    quick: bool,
    json_path: Path | None,
    svg_path: Path | None,
) -> None:
    """Measure what a storage call costs over the vendor's library alone."""
    import anyio

    from tallymark.bench import backends

    def tables() -> backends.Tables:
        asked = backends.Asked.of(urls, options, seconds=seconds, rounds=rounds, quick=quick)
        yield from anyio.run(functools.partial(backends.run, asked), backend="trio")

    run_question("backends", backends.METHOD, None, tables(), json_path=json_path, svg_path=svg_path)


main.add_command(markers)
for name in EVIDENCE:
    if find_spec(f"tallymark.bench.{name}") is not None:
        main.add_command(getattr(import_module(f"tallymark.bench.{name}.command"), name))


def _interrupt(*_: object) -> None:
    """Do as Ctrl-C does, so that nothing of the run remains; also in the background, where shells ignore SIGINT."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.raise_signal(signal.SIGINT)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, _interrupt)
    main(prog_name="python -m tallymark.bench")
