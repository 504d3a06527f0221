"""``python -m tallymark.bench``: the questions, and what they take. Nothing heavy is imported before it is needed."""

import functools
import json
import signal
from pathlib import Path

import click

from tallymark.backends.options import StorageOptions
from tallymark.bench.arguments import json_option, storage_option, svg_option
from tallymark.bench.killed.command import killed
from tallymark.bench.markers.command import markers
from tallymark.bench.sizing.command import sizing
from tallymark.bench.views.command import views
from tallymark.bench.writes.command import writes

_url = click.option(
    "--url",
    "urls",
    multiple=True,
    metavar="URL",
    help="Measure on this store, in a new folder there that is removed at the end; may be given several times. Without "
    "it: memory, a directory in memory, one on disk, and S3 on a server of this harness.",
)


@click.group(context_settings={"help_option_names": ["-h", "--help"]}, invoke_without_command=True)
@click.pass_context
def main(context: click.Context) -> None:
    """Measure Tallymark beside the alternatives, in one run on your own machine and storage."""
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


@main.command()
@_url
@storage_option
@click.option("--seconds", type=click.FloatRange(min=0, min_open=True), help="About how long it takes. [default: 90]")
@click.option("--rounds", type=click.IntRange(min=2), help="Samples of each side at most. [default: 201]")
@click.option("--quick", is_flag=True, help="A glance: 10 seconds, 21 rounds, and no large files.")
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
    """What does a call cost over the vendor's library alone?"""
    import anyio

    from tallymark.backends.errors import TallymarkError
    from tallymark.bench import plot, report, run
    from tallymark.cli.page import console

    try:
        asked = run.Asked.of(urls, options, seconds=seconds, rounds=rounds, quick=quick)
        answer = anyio.run(functools.partial(run.run, asked), backend="trio")
    except TallymarkError as error:
        raise click.ClickException(" ".join(str(error).split())) from error
    report.show(console(width=report.WIDTH), answer)
    if json_path:
        json_path.write_text(json.dumps(answer.document(), indent=1) + "\n")
    if svg_path:
        svg_path.write_text(plot.draw(answer))


main.add_command(writes)
main.add_command(killed)
main.add_command(sizing)
main.add_command(views)
main.add_command(markers)


def _interrupt(*_: object) -> None:
    """As Ctrl-C does, so that nothing is left of the run; also in the background, where a shell has it ignored."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.raise_signal(signal.SIGINT)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, _interrupt)
    main(prog_name="python -m tallymark.bench")
