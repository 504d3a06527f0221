"""``tallymark doctor``: examination of a store."""

import sys
from typing import TYPE_CHECKING, Literal, TypedDict

import click

from tallymark.cli.asking import Place, at_a_url, failing_plainly, json_keys, show
from tallymark.cli.page import print_table
from tallymark.engine.documents.document import document_of
from tallymark.engine.jobs.result import shown_bytes

if TYPE_CHECKING:
    from rich.console import Console

    from tallymark.backends.doctor import Diagnosis


class PromiseFields(TypedDict):
    promise: str
    result: Literal["kept", "broken", "untried"]
    detail: str


class LatencyFields(TypedDict):
    verb: Literal["put_new", "put", "get", "list", "delete"]
    count: int
    """Calls that were timed, one after the other."""
    median_s: float
    p99_s: float


class GroundFields(TypedDict):
    file_system: str
    mount_point: str
    free_bytes: int | None
    """Null where the file system does not report it."""


class DoctorDocument(TypedDict):
    url: str
    fit: bool
    verdict: str
    interval_s: float | None
    """The interval that ``MarkerSettings.interval_s="auto"`` would start with; null where no put succeeded."""
    promises: list[PromiseFields]
    latencies: list[LatencyFields]
    clock_skew_s: float | None
    """How far the store's clock is ahead of this machine's; null where it could not be read."""
    ground: GroundFields | None
    """File system of a local directory."""
    remarks: list[str]
    left: list[str]
    """What could not be removed."""
    seconds: float


@click.command(epilog=json_keys(DoctorDocument))
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
    """Check whether a store keeps the promises that tables depend on.

    Works in a separate directory below URL, which need not contain a table, and removes it; takes at most half a
    minute, unless more is allowed. The exit code is 0 only if the store is fit.
    """
    with failing_plainly(as_json=at.as_json):
        from tallymark.cli.examine import examined

        found = diagnosis(at.url, examined(at.url, at.options, is_large=is_large, probing_s=probing_s))
    show(at, found, show_doctor)
    sys.exit(0 if found["fit"] else 1)


def diagnosis(url: str, found: "Diagnosis") -> DoctorDocument:
    from tallymark.engine.markers.pace import PUTS_PER_PUT_TIME

    put_s = next((latency.mean_s for latency in found.latencies if latency.verb == "put_new"), None)
    interval_s = None if put_s is None else put_s / PUTS_PER_PUT_TIME
    return document_of(DoctorDocument, found, url=url, fit=found.is_fit, interval_s=interval_s, promises=found.findings)


def show_doctor(page: "Console", document: DoctorDocument) -> None:
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
