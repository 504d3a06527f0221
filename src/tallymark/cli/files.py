"""``tallymark files``: the sizes of the files of a table."""

import functools
from typing import TYPE_CHECKING

import click

from tallymark.cli.asking import Place, answer, at_a_url, json_keys
from tallymark.cli.page import print_table
from tallymark.engine.documents.files import FilesDocument, file_sizes
from tallymark.engine.jobs.result import shown_bytes

if TYPE_CHECKING:
    from rich.console import Console


BAR_WIDTH = 40
"""Columns of the longest bar, so that the table fits a page of 80."""


@click.command(epilog=json_keys(FilesDocument))
@at_a_url
@click.option("--partition", default="", metavar="PATH", help="Only what lies below it, such as year=2013.")
@click.option("--small-bytes", type=click.IntRange(min=0), metavar="N", help="Files below N bytes are small [100 MiB].")
def files(at: Place, partition: str, small_bytes: int | None) -> None:
    """Show the sizes of a table's files, and which partitions have small ones."""
    answer(at, functools.partial(file_sizes, partition=partition, small_below=small_bytes), show_files)


def show_files(page: "Console", document: FilesDocument) -> None:
    below = f" below {document['partition']}" if document["partition"] else ""
    if not document["files"]:
        page.print(f"No files{below} at position {document['position']:,}.")
        return
    total, p50, p95, largest = (shown_bytes(document[key]) for key in ("bytes", "p50", "p95", "largest"))
    facts = {
        "files": f"{document['files']:,}{below} in {document['partitions']:,} partitions, {total}",
        "sizes": f"p50 {p50}, p95 {p95}, largest {largest}",
        "small": f"{_share(document['small_file_share'])} of the files, with {_share(document['small_byte_share'])} of "
        f"the bytes, are below {shown_bytes(document['small_below'])}",
        "fewest": f"{document['fewest']:,} files would hold the same bytes",
    }
    if document["rewritten_bytes"]:
        per_byte = f"{document['rewritten_per_byte']:,.2f} for each byte"
        facts["rewritten"] = f"{shown_bytes(document['rewritten_bytes'])} to come to these files, {per_byte}"
    print_table(page, ["", ""], facts.items(), folding=(1,), has_header=False)
    most = max(each["files"] for each in document["buckets"])
    rows = [
        (shown_bytes(each["least"]), f"{each['files']:,}", shown_bytes(each["bytes"]), _bar(each["files"], most))
        for each in document["buckets"]
    ]
    print_table(page, ["size from", "files", "bytes", ""], rows, numbers=(0, 1, 2))
    if document["most_small"]:
        worst = [
            (
                each["partition"] or "-",
                f"{each['small_files']:,}",
                shown_bytes(each["small_bytes"]),
                f"{each['files']:,}",
            )
            for each in document["most_small"]
        ]
        print_table(
            page, ["partition", "small files", "bytes in them", "files"], worst, folding=(0,), numbers=(1, 2, 3)
        )


def _share(share: float) -> str:
    return f"{100 * share:.1f} %"


def _bar(count: int, most: int) -> str:
    """Return a bar, which is not empty for a positive value."""
    return "#" * max(count > 0, round(BAR_WIDTH * count / most))
