"""A whole run of the question ``commits``: each part at one place after the other."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path

from tallymark.bench.commits import broker, day, one_append, one_table, stream, writers
from tallymark.bench.commits.measure import Effort, Ground
from tallymark.bench.commits.sides import ROWS, SIDES
from tallymark.bench.folder import new_folder
from tallymark.bench.results import Table
from tallymark.bench.stores import KEPT_BYTES_MAX, MarkerStore, far, near

MEASURED: dict[str, Callable[[Ground], Iterator[Table]]] = {
    "one-append": one_append.tables,
    "writers": writers.tables,
    "one-table": one_table.tables,
    "broker": broker.tables,
    "stream": stream.tables,
    "day": day.tables,
}

QUICK = Effort(
    writers=(1, 4),
    callers=8,
    broker_writers=(8,),
    broker_rate=50.0,
    stream_callers=(1, 50),
    flush_intervals_s=(0.1,),
    day_commits=200,
    seconds=1.0,
    rounds=1,
    latencies_s=(0.005,),
)
"""Long enough to see that everything commits; too short for figures."""

METHOD = f"""\
Each writer appends {ROWS} rows (id, v, s) to one table, again and again; each load has a new table, and each writer has
made one commit before it. A latency is that of the whole call, from its start to its return: the data file, the commit
and what the format does after it. Commits that are in flight at the end are waited for: their latencies count, and of
each the part within the time counts in commits per second. Independent writers are threads in as many processes as
there are cores, each with its own table object (Tallymark: also its own event loop). Refused: a commit that the format
gives up after its own retries; the harness refreshes the table object and writes again, within the same latency. At the
end the format's own reader reads the rows of every file; other rows than were committed fail the run. CPU: of the
writers' processes, without the S3 stand-in. Tallymark syncs each file and its folder. deltalake and pyiceberg sync
nothing on a local disk, except for SQLite, which is pyiceberg's catalog; "+ fsync" syncs data file, log file and their
folders after each commit of deltalake. The catalog is on the local disk at every place, and its requests are not
counted. A broker alone decides commits of one file each, whose files are not written: in their entries is what tasks
would have reported. Writers send one after the other, or at a given rate, at random moments; a latency counts from when
a commit was due. Its loads begin with a second that does not count. Callers of a stream append 1 to {ROWS} rows at a
time, each when it is answered, or at a given rate, at random moments. The model of a mean ack has a flush of four
requests in sequence: of the stand-in's latency, or on a local disk of the median of a synced file. Memory is that of
the callers' process (VmHWM). Of a day, the clocks of the table and of its store are moved on by a second after each
commit. Each round begins with another side; ratios are taken within a round."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    parts: Sequence[str] = tuple(MEASURED)
    sides: Sequence[str] = tuple(SIDES)
    places: Sequence[str] = ("local", "s3")
    effort: Effort = field(default_factory=Effort)
    parent: Path

    def stores(self) -> Iterator[AbstractContextManager[MarkerStore]]:
        if "local" in self.places:
            yield near(self.parent)
        if "s3" in self.places:
            for latency_s in self.effort.latencies_s:  # files are read again at the end of each load
                yield far(latency_s, puts_per_s=0.0, data_kept_bytes_max=KEPT_BYTES_MAX)


def tables(asked: Asked, progress: Callable[[str], None]) -> Iterator[Table]:
    """Measure below a folder. Nothing remains there."""
    sides = [SIDES[name] for name in asked.sides]
    for part in asked.parts:
        for store in asked.stores():
            with new_folder(asked.parent) as scratch, store as place:
                yield from MEASURED[part](Ground(place, scratch, sides, asked.effort, progress))
