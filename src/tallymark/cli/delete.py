"""``tallymark delete``: deletion of the rows that match a predicate."""

import functools
from typing import TYPE_CHECKING, TypedDict

import click

from tallymark.cli.asking import Place, answer, at_a_url, json_keys
from tallymark.cli.page import print_table
from tallymark.engine.documents.document import document_of
from tallymark.engine.jobs.result import shown_bytes

if TYPE_CHECKING:
    from rich.console import Console

    from tallymark.engine.table import Table


class MatchedFileFields(TypedDict):
    path: str
    rows: int
    bytes: int
    deleted: int
    """Rows that match; all of them where the file is removed whole."""


class DeleteDocument(TypedDict):
    url: str
    where: str
    """As given."""
    dry_run: bool
    """True if nothing was changed."""
    instant: str | None
    """None in a dry run."""
    position: int
    """Of the commit; in a dry run, the position at which the rows were looked up."""
    is_rerun: bool
    """The txn was committed before: the counts are those of that commit."""
    deleted: int
    """Rows."""
    removed_files: int
    """Files all of whose rows match."""
    removed_bytes: int
    rewritten_files: int
    """Files of which some rows match."""
    rewritten_bytes: int
    looked_up_files: int
    """Files whose columns were read to find the rows."""
    looked_up_bytes: int
    pending: str | None
    """What could not be done after the commit; with --purge, also what remains of older versions."""
    files: list[MatchedFileFields]
    """Files with rows that match; only in a dry run."""


@click.command(epilog=json_keys(DeleteDocument))
@at_a_url
@click.option("--where", required=True, metavar="PREDICATE", help='Rows to delete, such as "user_id = 7".')
@click.option("--dry-run", is_flag=True, help="Show what would be deleted; change nothing.")
@click.option("--txn", metavar="NAME:BATCH", help="Delete once under this name, however often the command is run.")
@click.option(
    "--purge",
    is_flag=True,
    help="Also delete the table's older versions, and the log that has their keys.",
)
def delete(at: Place, where: str, dry_run: bool, txn: str | None, purge: bool) -> None:
    """Delete the rows that match a predicate.

    Files all of whose rows match are removed, and others with such rows are rewritten. Rows for which the predicate is
    null stay.
    """
    if dry_run and (purge or txn is not None):
        raise click.UsageError("--dry-run commits nothing, and --txn and --purge are of a commit: leave one out.")
    delete = functools.partial(delete_rows, where=where, txn=txn, purge=purge)
    answer(at, functools.partial(plan_rows, where=where) if dry_run else delete, show_delete)


async def plan_rows(table: "Table", where: str) -> DeleteDocument:
    plan = await table.plan_delete(where)
    found = [(file, file.rows) for file in plan.removed] + [(each.file, each.rows) for each in plan.rewritten]
    return document_of(
        DeleteDocument,
        plan,
        url=table.url,
        where=where,
        dry_run=True,
        instant=None,
        is_rerun=False,
        pending=None,
        removed_files=len(plan.removed),
        rewritten_files=len(plan.rewritten),
        files=[document_of(MatchedFileFields, file, deleted=rows) for file, rows in found],
    )


async def delete_rows(table: "Table", where: str, txn: str | None, purge: bool) -> DeleteDocument:
    result = await table.delete(where, txn=txn, purge=purge)
    return document_of(
        DeleteDocument,
        result.changes,
        url=table.url,
        where=where,
        dry_run=False,
        instant=result.instant,
        position=result.position,
        is_rerun=result.is_rerun,
        pending=result.pending,
        files=[],
    )


def show_delete(page: "Console", document: DeleteDocument) -> None:
    if document["dry_run"]:
        page.print("Dry run: nothing has been changed. A delete would do this:")
    if document["is_rerun"]:
        page.print("Committed before; nothing was written. That delete has done this:")
    page.print(f"{document['deleted']:,} rows deleted.")
    page.print(f"{document['removed_files']:,} files removed whole, {shown_bytes(document['removed_bytes'])}.")
    page.print(f"{document['rewritten_files']:,} files rewritten, {shown_bytes(document['rewritten_bytes'])}.")
    page.print(f"{document['looked_up_files']:,} files looked up, {shown_bytes(document['looked_up_bytes'])}.")
    if document["pending"]:
        page.print(f"Pending: {document['pending']}.")
    if document["files"]:
        rows = [
            (file["path"], f"{file['deleted']:,}", f"{file['rows']:,}", shown_bytes(file["bytes"]))
            for file in document["files"]
        ]
        print_table(page, ["file", "deleted", "of rows", "size"], rows, folding=(0,), numbers=(1, 2, 3))
