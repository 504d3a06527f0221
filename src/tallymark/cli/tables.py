"""The documents as tables for people."""

from collections.abc import Sequence

from rich.console import Console

from tallymark.cli.document import (
    CheckpointDocument,
    CleanDocument,
    DoctorDocument,
    EndedFields,
    EntryFields,
    MarkersDocument,
    OpenInstantFields,
    RollbackDocument,
    ScopeFields,
    StatusDocument,
    TimelineDocument,
)
from tallymark.cli.page import print_table
from tallymark.engine.jobs.result import shown_bytes

SCOPE_SHOWN = 3
"""Partitions of a scope that are named; ``--json`` names them all."""


def show_status(page: Console, document: StatusDocument) -> None:
    facts = {
        "table": document["name"],
        "url": document["url"],
        "partitioned by": ", ".join(document["partition_by"]) or "nothing",
        "readers": document["readers"],
        **_retained(document),
        "position": f"{document['position']:,}",
        "partitions": f"{document['partitions']:,}",
        "files": f"{document['files']:,}",
        "rows": f"{document['rows']:,}",
        "bytes": f"{document['bytes']:,} ({shown_bytes(document['bytes'])})",
    }
    print_table(page, ["", ""], facts.items(), folding=(1,), has_header=False)
    columns = [
        (column["name"], column["type"], "" if column["nullable"] else "not null") for column in document["columns"]
    ]
    print_table(page, ["column", "type", ""], columns, folding=(0, 1))
    if not document["open_instants"]:
        page.print("No open instants: no writer is at work, and none has left anything.")
        return
    headings = ["open instant", "operation", "writer", "state", "last heartbeat", "markers"]
    print_table(page, headings, [_open_instant(instant) for instant in document["open_instants"]], folding=(2, 3))


def show_timeline(page: Console, document: TimelineDocument) -> None:
    if not document["entries"]:
        page.print("No entries: nothing has been committed yet.")
        return
    headings = ["position", "instant", "operation", "added", "removed", "rows", "bytes", "txn", "scope"]
    rows = [_entry(entry) for entry in document["entries"]]
    print_table(page, headings, rows, folding=(7, 8), numbers=(0, 3, 4, 5, 6))


def show_markers(page: Console, document: MarkersDocument) -> None:
    rows = [(marker["path"], marker["io"]) for marker in document["markers"]]
    if rows:
        print_table(page, ["data file", "io"], rows, folding=(0,))
    page.print(f"{len(rows):,} markers of instant {document['instant']}.")


def show_rollback(page: Console, document: RollbackDocument) -> None:
    _show_ended(page, document["ended"])


def show_clean(page: Console, document: CleanDocument) -> None:
    if document["dry_run"]:
        page.print("Dry run: nothing has been changed. A clean would do this:")
    _show_ended(page, document["ended"])
    partitions = document["partitions"]
    size = f"{document['files']:,} replaced files, {shown_bytes(document['bytes'])}, in {len(partitions):,} partitions"
    page.print(f"{size}{_first(partitions)}.")
    if document["readers"]:
        page.print(f"{document['held_files']:,} more stay for readers: {_readers(document)}.")
    page.print(f"{document['fences_swept']:,} fences.")


def show_checkpoint(page: Console, document: CheckpointDocument) -> None:
    page.print(
        f"Position {document['position']:,}: {document['files']:,} files in {document['partitions']:,} partitions."
    )
    if not document["bytes_written"]:
        page.print("There was a checkpoint of it already.")
        return
    size, seconds = shown_bytes(document["bytes_written"]), document["seconds"]
    page.print(f"{document['parts_written']:,} of {document['parts']:,} parts written, {size}, in {seconds:,.1f} s.")


def _readers(document: CleanDocument) -> str:
    return ", ".join(
        f"process {reader['pid']} on {reader['host']} from position {reader['position']} on"
        for reader in document["readers"]
    )


def show_doctor(page: Console, document: DoctorDocument) -> None:
    promises = [(each["promise"], each["result"], each["detail"]) for each in document["promises"]]
    print_table(page, ["promise", "", "seen"], promises, folding=(2,))
    if document["latencies"]:
        rows = [
            (each["verb"], _ms(each["median_s"]), _ms(each["p99_s"]), f"{each['count']:,}")
            for each in document["latencies"]
        ]
        print_table(page, ["verb", "median", "p99", "calls"], rows, numbers=(1, 2, 3))
    print_table(page, ["", ""], _doctor_facts(document), folding=(1,), has_header=False)
    page.print(f"{document['url']} is {document['verdict']}.")


def _doctor_facts(document: DoctorDocument) -> list[tuple[str, str]]:
    facts = []
    if document["interval_s"] is not None:
        facts.append(("interval", f"{_ms(document['interval_s'])}, a quarter of the mean put: what 'auto' begins with"))
    if document["clock_skew_s"] is not None:
        facts.append(("clock", _clock(document["clock_skew_s"])))
    if (ground := document["ground"]) is not None:
        room = "" if ground["free_bytes"] is None else f", {shown_bytes(ground['free_bytes'])} free"
        facts.append(("file system", f"{ground['file_system']} at {ground['mount_point']}{room}"))
    facts += [("remark", remark) for remark in document["remarks"]]
    facts += [("left behind", path) for path in document["left"]]
    return [*facts, ("took", f"{document['seconds']:.1f} s")]


def _clock(ahead_s: float) -> str:
    if abs(ahead_s) < 1.5:  # stores report whole seconds
        return "the store's and this machine's agree to a second"
    return f"the store's is {abs(ahead_s):,.0f} s {'ahead of' if ahead_s > 0 else 'behind'} this machine's"


def _ms(seconds: float) -> str:
    return f"{1000 * seconds:,.1f} ms"


def _show_ended(page: Console, ended: Sequence[EndedFields]) -> None:
    if not ended:
        page.print("No instant to end: no dead writer has left anything.")
        return
    rows = [(one["instant"], one["outcome"], f"{one['marked']:,}", f"{one['fences']:,}") for one in ended]
    print_table(page, ["instant", "outcome", "marked files", "fences"], rows, numbers=(2, 3))


def _open_instant(found: OpenInstantFields) -> tuple[str, ...]:
    age = found["beat_age_s"]
    return (
        found["instant"],
        found["operation"],
        f"{found['host']} process {found['pid']}",
        found["writer"] if found["decision"] is None else f"{found['writer']}, {found['decision']} to be finished",
        "none" if age is None else f"{age:,.0f} s ago",
        found["marker_kind"],
    )


def _entry(entry: EntryFields) -> tuple[str, ...]:
    return (
        f"{entry['position']:,}",
        entry["instant"],
        entry["operation"],
        f"{entry['files_added']:,}",
        f"{entry['files_removed']:,}",
        f"{entry['rows']:,}",
        shown_bytes(entry["bytes"]),
        entry["txn"] or "-",
        _scope(entry["scope"]) if entry["horizon"] is None else f"replaced up to position {entry['horizon']:,}",
    )


def _retained(document: StatusDocument) -> dict[str, str]:
    if document["retain_hours"] is None:
        return {}
    kept = f"{document['retained_files']:,} files, {shown_bytes(document['retained_bytes'])}"
    return {"replaced files": f"kept for {document['retain_hours']:g} hours; now {kept}"}


def _first(partitions: Sequence[str]) -> str:
    named = ", ".join(filter(None, partitions[:SCOPE_SHOWN]))
    more = f" and {len(partitions) - SCOPE_SHOWN:,} more" if len(partitions) > SCOPE_SHOWN else ""
    return f": {named}{more}" if named else ""


def _scope(scope: ScopeFields | None) -> str:
    if scope is None:
        return "-"
    if scope["all"]:
        return "all"
    parts = [*(f"{prefix}/..." for prefix in scope["prefixes"]), *scope["partitions"]]
    named, count = parts[:SCOPE_SHOWN], len(parts)
    rest = [f"{count - len(named):,} more"] if count > len(named) else []
    return ", ".join([*named, *rest]) or "nothing"
