"""``tallymark files`` for people."""

from rich.console import Console

from tallymark.cli.files import FilesDocument
from tallymark.cli.page import print_table

BAR_WIDTH = 40
"""Columns of the longest bar, so that a page of 80 holds the table around it."""


def show_files(page: Console, document: FilesDocument) -> None:
    below = f" below {document['partition']}" if document["partition"] else ""
    if not document["files"]:
        page.print(f"No files{below} at position {document['position']:,}.")
        return
    facts = {
        "files": f"{document['files']:,}{below} in {document['partitions']:,} partitions, {size(document['bytes'])}",
        "sizes": f"p50 {size(document['p50'])}, p95 {size(document['p95'])}, largest {size(document['largest'])}",
        "small": f"{_share(document['small_file_share'])} of the files, with {_share(document['small_byte_share'])} of "
        f"the bytes, are below {size(document['small_below'])}",
        "fewest": f"{document['fewest']:,} files would hold the same bytes",
    }
    if document["rewritten_bytes"]:
        per_byte = f"{document['rewritten_per_byte']:,.2f} for each byte"
        facts["rewritten"] = f"{size(document['rewritten_bytes'])} to come to these files, {per_byte}"
    print_table(page, ["", ""], facts.items(), folding=(1,), has_header=False)
    most = max(each["files"] for each in document["buckets"])
    rows = [
        (size(each["least"]), f"{each['files']:,}", size(each["bytes"]), _bar(each["files"], most))
        for each in document["buckets"]
    ]
    print_table(page, ["size from", "files", "bytes", ""], rows, numbers=(0, 1, 2))
    if document["most_small"]:
        worst = [
            (each["partition"] or "-", f"{each['small_files']:,}", size(each["small_bytes"]), f"{each['files']:,}")
            for each in document["most_small"]
        ]
        print_table(
            page, ["partition", "small files", "bytes in them", "files"], worst, folding=(0,), numbers=(1, 2, 3)
        )


def size(count: int) -> str:
    """Bytes in the binary units that sizes of files are set in: 120 MiB."""
    value, units = float(count), ["bytes", "KiB", "MiB", "GiB", "TiB", "PiB"]
    while value >= 1024 and len(units) > 1:
        value, units = value / 1024, units[1:]
    return f"{value:,.0f} {units[0]}" if value == int(value) else f"{value:,.1f} {units[0]}"


def _share(share: float) -> str:
    return f"{100 * share:.1f} %"


def _bar(count: int, most: int) -> str:
    """Never empty where there is something to show."""
    return "#" * max(count > 0, round(BAR_WIDTH * count / most))
