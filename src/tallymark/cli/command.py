"""The ``tallymark`` command and its subcommands. Nothing heavy is imported before it is needed."""

import click

from tallymark import __version__
from tallymark.cli.accept_loss import accept_loss
from tallymark.cli.checkpoint import checkpoint
from tallymark.cli.clean import clean
from tallymark.cli.delete import delete
from tallymark.cli.doctor import doctor
from tallymark.cli.explain import explain
from tallymark.cli.files import files
from tallymark.cli.markers import markers
from tallymark.cli.plan import plan
from tallymark.cli.report import report
from tallymark.cli.rollback import rollback
from tallymark.cli.serve import serve
from tallymark.cli.status import status
from tallymark.cli.timeline import timeline


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="tallymark", message="%(prog)s %(version)s")
def main() -> None:
    """Inspect and maintain tables that Tallymark writes.

    URL is a table's base path: a directory, or a URL such as s3://bucket/flights. The exit code is 0 only on success,
    1 if the command failed, 2 if its arguments were wrong. A failed command prints the reason in one line on stderr;
        with
    --json a JSON object {"error": {"type", "message"}} follows.
    """


for _command in (
    status,
    timeline,
    markers,
    delete,
    rollback,
    clean,
    checkpoint,
    doctor,
    files,
    explain,
    plan,
    accept_loss,
    report,
    serve,
):
    main.add_command(_command)
