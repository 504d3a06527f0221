"""The format page names every object that the library puts, every field that its encoders write, and nothing else."""

import json
import re
from typing import Any
from unittest import mock

from tallymark.backends.hdfs.backend import SCRATCH as HDFS_SCRATCH
from tallymark.backends.local import SCRATCH
from tallymark.backends.memory import MemoryBackend
from tallymark.engine.instants.finish import recut_folder, staging_folder
from tallymark.engine.rpc import messages
from tallymark.engine.settings import MarkerSettings
from tallymark.engine.sizing.task_plan import encode_task_plan
from tallymark.engine.tasks.report import TaskReport
from tallymark.engine.tasks.ticket import WriteTicket
from tallymark.engine.timeline import log
from tallymark.engine.timeline.entry import decode_entry, encode_entry
from tallymark.engine.timeline.java_properties import load
from tallymark.engine.timeline.properties import PROPERTIES
from tallymark.engine.timeline.reader_lease import READ_FOLDER
from tallymark.engine.timeline.reservation import OPEN_FOLDER
from tallymark.engine.upsert.keys import KeyReport
from tallymark.engine.upsert.locate import Lookup
from tallymark.engine.views.block import pack_rows, unpack_rows
from tallymark.engine.views.checkpoint_format import CHECKPOINT_FOLDER, POINTER
from tests.docs.markdown import DOCS, names_in, table_after
from tests.engine.jobs.filling import appended
from tests.engine.jobs.scene import begin, committed, mark_directly, name_of, table, write_rows
from tests.engine.upsert.scene import KEYED, Changing, changed, changing, people, person
from tests.stores.second_reader import DATA_FILE, LOG, opened, unpacked
from tests.support.faulty import FaultyBackend
from tests.support.loops import on_both_loops

PLACEHOLDERS = {
    "T": r"\d{17}",
    "n": r"\d{20}",
    "nonce": "[0-9a-f]{32}",
    "k": r"\d+",
    "m": r"\d{10}",
    "i": r"\d{4}",
    "24 hex digits": "[0-9a-f]{24}",
    "path": "month=.+",
    "IO": "(CREATE|MERGE)",
    "action": "(commit|replacecommit)",
    "task": r"\d+",
    "partition": r"month=\d",
    "file": DATA_FILE.pattern,
}
"""What they stand for in a table of flights by month."""

STORES_OWN = {f"{folder}/<24 hex digits>" for folder in (SCRATCH, HDFS_SCRATCH)} | {
    f"{folder('T').replace('/T/', '/<T>/')}/<24 hex digits>.tmp" for folder in (staging_folder, recut_folder)
}
"""Objects that a store with rename puts by itself, below folders that the code names."""


SOMETIMES = re.compile("of earlier releases; ignored|absent where there are none")
"""In the description of what a table of this release need not have."""

OBJECTS = "## Objects of a table"


class Recording(FaultyBackend):
    """A store that remembers all that was ever put."""

    def __init__(self, *, has_staging: bool) -> None:
        super().__init__(MemoryBackend(has_staging=has_staging))
        self.stored: dict[str, bytes] = {}

    async def put(self, path: str, data: bytes) -> None:
        await super().put(path, data)
        self.stored[path] = data

    async def put_new(self, path: str, data: bytes) -> None:
        await super().put_new(path, data)
        self.stored[path] = data

    def first(self, pattern: str) -> bytes:
        return next(data for path, data in self.stored.items() if re.fullmatch(pattern, path))


async def live(storage: Recording) -> tuple[TaskReport, WriteTicket]:
    """A table's life with every kind of object. Returns a report and a ticket of it."""
    await committed(storage, readers="table", retain_hours=1.0, txn="load:1", markers=MarkerSettings())
    async with begin(storage, markers=MarkerSettings()) as job:
        path = f"month=1/{name_of(job)}"
        await mark_directly(job, storage, [path])
        report = await write_rows(job, storage)
        await job._lease.renew()
    await appended(storage, {1: [7], 2: [8]})
    with mock.patch.object(log, "BODY_BYTES", 100):
        await committed(storage, "overwrite", {1: 1})
    async with table(storage).reading():
        pass
    await table(storage).clean(retain_hours=0)
    await table(storage).checkpoint()
    return report, job.ticket


async def keyed(storage: Recording) -> tuple[KeyReport, Lookup]:
    """A write by key that finds one. Returns a report of its keys, and a lookup."""
    await changed(storage, person(1), **KEYED)
    async with changing(storage) as job:
        step = Changing(job, storage, people(person(1, at=1)))
        report = await step.keys()
        [lookup] = await job.look_up([report])
    await changed(storage, person(1, at=1))
    await table(storage).checkpoint()
    return report, lookup


def _pattern(template: str) -> str:
    pieces = re.split(r"<([^>]+)>", template)
    return "".join(PLACEHOLDERS[piece] if at % 2 else re.escape(piece) for at, piece in enumerate(pieces))


def named(heading: str, *, always: bool) -> set[str]:
    """What the first table below a heading names: what this release always writes, or the rest."""
    rows = [row for row in table_after("format.md", heading) if (SOMETIMES.search(row[-1]) is None) is always]
    return {name for row in rows for name in names_in(row[0])}


@on_both_loops
async def test_the_page_has_every_object_that_is_put_and_no_other():
    put: set[str] = set()
    for has_staging in (True, False):
        storage = Recording(has_staging=has_staging)
        await live(storage)
        put |= {*storage.stored, *storage.paths("publish")}
        storage = Recording(has_staging=has_staging)
        await keyed(storage)
        put |= {path for path in storage.stored if "/KEYS/" in path}
    seen = {template: {path for path in put if re.fullmatch(_pattern(template), path)} for template in objects()}
    assert put - set().union(*seen.values()) == set()
    unseen = {template for template, paths in seen.items() if not paths}
    assert unseen - named(OBJECTS, always=False) == STORES_OWN


@on_both_loops
async def test_the_page_has_every_field_that_is_written_and_no_other():
    storage = Recording(has_staging=False)
    report, ticket = await live(storage)
    of_changes = Recording(has_staging=False)
    keys, lookup = await keyed(of_changes)
    sent = {
        "### Report": report.encode(),
        "### Ticket": ticket.encode(),
        "### Plan": encode_task_plan(()),
        "### Key report": keys.encode(),
        "### Lookup": lookup.encode(),
    }
    written = written_to(storage) | {heading: unpacked(data[8:], heading) for heading, data in sent.items()}
    for heading, found in written.items():
        assert found.keys() - named(heading, always=False) == named(heading, always=True), heading
    identity = set(names_in(cell("### Reservation", "writer")))
    assert written["### Reservation"]["writer"].keys() == written["### Leases"]["process"].keys() == identity
    assert written["### Summary"]["sizing"].keys() == set(names_in(cell("### Summary", "sizing")))
    assert summary_of_changes(of_changes).keys() == set(names_in(cell("### Summary", "changes")))
    found = load(of_changes.stored[PROPERTIES], source=PROPERTIES)
    assert found.keys() - named("## Properties", always=False) == named("## Properties", always=True)
    extra = set(names_in(cell("### Commit metadata", "extraMetadata")))
    assert written["### Commit metadata"]["extraMetadata"].keys() <= extra


def summary_of_changes(storage: Recording) -> dict[str, Any]:
    entries = [unpacked(data[8:], path) for path, data in storage.stored.items() if path.startswith(LOG)]
    found: dict[str, Any] = entries[-1]["summary"]["changes"]
    return found


def written_to(storage: Recording) -> dict[str, dict[str, Any]]:
    """An object of each kind, by the heading that describes it."""
    puts = storage.stored.items()
    entries = [unpacked(data[8:], path) for path, data in puts if path.startswith(LOG)]
    fill = next(entry for entry in entries if (entry.get("summary") or {}).get("sizing"))
    pointer = next(entry for entry in entries if "body" in entry)
    body = unpacked(storage.stored[pointer["body"]][8:], pointer["body"])
    properties = load(storage.stored[PROPERTIES], source=PROPERTIES)
    projected = next(data for path, data in puts if path.endswith(".replacecommit"))
    latest = opened(storage.stored, POINTER)
    manifest = opened(storage.stored, f"{CHECKPOINT_FOLDER}/{latest['manifests'][0]}")
    return {
        "## Properties": properties,
        "### Fields of an entry": fill,
        "### Summary": fill["summary"],
        "### Scope": body["scope"],
        "### Pointer and body": pointer,
        "### Latest": latest,
        "### Manifest": manifest,
        "### Part and block": opened(storage.stored, f"{CHECKPOINT_FOLDER}/{manifest['parts'][0][2]}"),
        "### Reservation": unpacked(storage.first(rf"{re.escape(OPEN_FOLDER)}/.*"), "reservation"),
        "### Leases": unpacked(storage.first(rf"{re.escape(READ_FOLDER)}/.*"), "lease"),
        "### Commit metadata": json.loads(projected),
    }


def objects() -> set[str]:
    return named(OBJECTS, always=True) | named(OBJECTS, always=False)


def cell(heading: str, name: str) -> str:
    """The last cell of a field's row."""
    return next(row[-1] for row in table_after("format.md", heading) if name in names_in(row[0]))


def example(heading: str) -> bytes:
    """The bytes of the example below a heading: hexadecimal digits, and what they mean behind two spaces."""
    block = (DOCS / "format.md").read_text().partition(f"\n{heading}\n")[2].split("```")[1]
    return bytes.fromhex("".join(line.partition("  ")[0] for line in block.splitlines()[1:]))


def test_the_examples_are_what_the_encoders_write():
    entry = example("### Example of an entry")
    assert encode_entry(decode_entry(entry, source="example")) == entry
    block = example("### Example of a block")
    assert pack_rows(unpack_rows(block, "month=1")) == block
    message = example("### Example of a message")
    assert messages.encode_request(messages.decode_request(message)) == message
