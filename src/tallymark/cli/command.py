"""The commands: what they take, how they ask and how they end. Nothing heavy is imported before it is needed."""

import functools
import sys

import click

from tallymark import __version__
from tallymark.cli import document
from tallymark.cli import watch as watched
from tallymark.cli.asking import Place, answer, ask, at_a_url, failing_plainly, json_keys, show
from tallymark.cli.look import explain, files, plan


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="tallymark", message="%(prog)s %(version)s")
def main() -> None:
    """Look at tables that Tallymark writes, and put them in order.

    URL is a table's base path: a directory, or a URL such as s3://bucket/flights. The exit code is 0 only on success,
    1 if the command failed, 2 if it was called wrongly. A failed command says why in one line on stderr; with --json a
    JSON object {"error": {"type", "message"}} follows.
    """


@main.command(epilog=json_keys(document.StatusDocument))
@at_a_url
def status(at: Place) -> None:
    """Show what a table holds, and who is writing it."""
    from tallymark.cli.tables import show_status

    answer(at, document.status, show_status)


@main.command(epilog=json_keys(document.TimelineDocument))
@at_a_url
@click.option("--last", type=click.IntRange(min=1), metavar="N", help="Only the N newest entries.")
def timeline(at: Place, last: int | None) -> None:
    """List commits and rollbacks, oldest first."""
    from tallymark.cli.tables import show_timeline

    answer(at, functools.partial(document.timeline, last=last), show_timeline)


@main.command(
    epilog=f"{json_keys(document.MarkersDocument)} With --watch as well, a line a look: "
    f"{document.keys(watched.WatchDocument)}."
)
@at_a_url
@click.argument("instant", required=False)
@click.option("--watch", "is_watch", is_flag=True, help="Count them again and again, of INSTANT or of all open ones.")
@click.option(
    "--every",
    type=click.FloatRange(min=0.1),
    default=2.0,
    show_default=True,
    metavar="S",
    help="Seconds between two looks: each costs some four small requests.",
)
def markers(at: Place, instant: str | None, is_watch: bool, every: float) -> None:
    """List the markers of an open instant.

    Each names a data file that may have been begun. With --watch they are counted while the job runs, by what lies in
    storage: until Ctrl-C, or until INSTANT is over.
    """
    if is_watch:
        watched.watch(at, instant, every)
        return
    if instant is None:
        raise click.UsageError("Missing argument 'INSTANT'; only --watch does without.")
    from tallymark.cli.tables import show_markers

    answer(at, functools.partial(document.markers, instant=instant), show_markers)


@main.command(epilog=json_keys(document.RollbackDocument))
@at_a_url
@click.option("--instant", metavar="T", help="End this instant, even if its writer is alive; asks first.")
@click.option("--yes", is_flag=True, help="Do not ask.")
def rollback(at: Place, instant: str | None, yes: bool) -> None:
    """End every instant whose writer is dead.

    What had not been committed goes away; what had been is finished.
    """
    from tallymark.cli.tables import show_rollback

    if instant is not None and not yes:
        _confirm(at, instant)
    answer(at, functools.partial(document.rollback, instant=instant), show_rollback)


@main.command(epilog=json_keys(document.CleanDocument))
@at_a_url
@click.option("--dry-run", is_flag=True, help="Show what would go; change nothing.")
@click.option(
    "--retain-hours",
    type=click.FloatRange(min=0),
    metavar="H",
    help="Keep replaced files for so many hours, this once; else as the table was made.",
)
def clean(at: Place, dry_run: bool, retain_hours: float | None) -> None:
    """Do as rollback does, then remove what was kept for long enough.

    That is replaced files of a table with readers="table", and on object stores the fences of lost task attempts.
    """
    from tallymark.cli.deleting import shown_deletes
    from tallymark.cli.tables import show_clean

    with shown_deletes() as progress:
        found = ask(
            at, functools.partial(document.clean, retain_hours=retain_hours, dry_run=dry_run, progress=progress)
        )
    show(at, found, show_clean)


@main.command(epilog=json_keys(document.CheckpointDocument))
@at_a_url
def checkpoint(at: Place) -> None:
    """Leave a checkpoint, from which the log is read on.

    Jobs do so every so many entries; asked for, it is of all that is committed by now.
    """
    from tallymark.cli.tables import show_checkpoint

    answer(at, document.checkpoint, show_checkpoint)


@main.command(epilog=json_keys(document.DoctorDocument))
@at_a_url
@click.option("--large", "is_large", is_flag=True, help="Try a file of 5 GB, too, however long that takes.")
@click.option(
    "--seconds",
    "probing_s",
    type=click.FloatRange(min=1.0),
    default=21.0,
    show_default=True,
    help="Time for all tries together; a slow store needs more.",
)
def doctor(at: Place, is_large: bool, probing_s: float) -> None:
    """Try whether a store keeps what tables are built on.

    Works in a directory of its own below URL, where no table need be, and removes it; takes half a minute at most,
    unless it is given more. The exit code is 0 only if the store is fit.
    """
    with failing_plainly(as_json=at.as_json):
        from tallymark.cli.doctor import examined

        found = document.doctor(at.url, examined(at.url, at.options, is_large=is_large, probing_s=probing_s))
    from tallymark.cli.tables import show_doctor

    show(at, found, show_doctor)
    sys.exit(0 if found["fit"] else 1)


main.add_command(files)
main.add_command(explain)
main.add_command(plan)


def _confirm(at: Place, instant: str) -> None:
    """Say who would be interrupted, and ask. An instant that is not open is left for the rollback to refuse."""
    found = ask(at, document.status)
    for writer in found["open_instants"]:
        if writer["instant"] == instant:
            age = writer["beat_age_s"]
            heartbeat = "no heartbeat" if age is None else f"last heartbeat {age:,.0f} s ago"
            who = f"{writer['host']} process {writer['pid']} ({writer['writer']}, {heartbeat})"
            click.confirm(f"Instant {instant} is being written by {who}. Roll it back?", abort=True, err=True)
