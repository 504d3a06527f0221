"""Question ``backends``: what a call through Tallymark costs over the bare library, on one store, in one run.

``plain`` is the library's own call. ``thread`` is the same call in a worker thread of an event loop, which an
asynchronous program needs to stay responsive; ours is compared with it. ``ours`` goes through ``open_backend``. A data
file is written by blocking code on every side, as in a task.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tallymark.backends import StorageOptions
from tallymark.bench import places
from tallymark.bench.caller import Awaited, Blocking, Caller, in_thread
from tallymark.bench.case import CASES, QUICK, Case
from tallymark.bench.command import show_progress
from tallymark.bench.method import Method, Samples, take_samples
from tallymark.bench.paired import Bar, Estimate, compare, estimate, verdict
from tallymark.bench.places import Place
from tallymark.bench.results import VERDICTS, Chart, Table, column, seconds, signed_seconds
from tallymark.bench.verb_side import FILLING_CONCURRENCY, Hands, VerbSide

Tables = Iterator[Table]

BAR = Bar(share=0.05, seconds=50e-6)
"""Ours may take a twentieth more than the library, or 50 µs per call, whichever is larger."""

SECONDS, SECONDS_QUICK = 90.0, 10.0
"""Of the whole run."""

ROUNDS, ROUNDS_QUICK = 201, 21

METHOD = (
    f"{Method()} Times are of one call; of rows with several at once, the time that passes per call. The cost is "
    "Tallymark's less that of the bare library in a worker thread; of data files, which blocking code writes, less "
    f"that of its own call. Bar: {BAR} per call, whichever is larger; ? where the interval is on both sides of it."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CallRow:
    title: str = column("")
    plain_s: float = column("own call", seconds)
    thread_s: float | None = column("in a thread", seconds)
    ours_s: float = column("Tallymark", seconds)
    cost_s: Estimate = column("cost (95 %)", signed_seconds)
    ratio: Estimate = column("ratio (95 %)")
    verdict: str | None = column("in the bar", VERDICTS.__getitem__)
    calls_per_sample: int
    samples_s: dict[str, tuple[float, ...]]


@dataclass(frozen=True, slots=True)
class Asked:
    urls: tuple[str, ...]
    """Empty: the stores that need nothing from the user."""
    options: StorageOptions
    cases: tuple[Case, ...]
    rounds: int
    seconds: float

    @classmethod
    def of(
        cls, urls: Sequence[str], options: StorageOptions, *, seconds: float | None, rounds: int | None, quick: bool
    ) -> "Asked":
        return cls(
            urls=tuple(urls),
            options=options,
            cases=QUICK if quick else CASES,
            rounds=rounds or (ROUNDS_QUICK if quick else ROUNDS),
            seconds=seconds or (SECONDS_QUICK if quick else SECONDS),
        )


async def run(asked: Asked) -> list[Table]:
    """Measure on each store. Nothing remains there, also after an interruption."""
    stores = [places.at(url, asked.options) for url in asked.urls] or places.usual()
    method = Method(round_count=asked.rounds, case_s=asked.seconds / len(stores) / len(asked.cases))
    tables = []
    for opening in stores:
        async with opening as place:
            tables.append(await measured(place, asked.cases, method))
    return tables


async def measured(place: Place, cases: Sequence[Case], method: Method) -> Table:
    await place.ours.open()
    rows = []
    for case in cases:
        show_progress(f"{place.title} ({place.where}): {case.label}")
        sides = _sides(place, case)
        samples = await take_samples(sides, method, call_count_max=case.call_count_max, step=case.step)
        rows.append(call_row(case.label, samples, BAR if place.has_hop else None))
    title = f"{place.title} ({place.where}) beside {place.peer.name}"
    return Table(title=title, rows=rows, charts=(Chart(values=("ratio",), axis="Tallymark over the library"),))


def call_row(label: str, samples: Samples, bar: Bar | None) -> CallRow:
    taken = samples.per_call_s
    reference = taken.get("thread", taken["plain"])
    found = compare(taken["ours"], reference)
    return CallRow(
        title=label,
        plain_s=estimate(taken["plain"]).value,
        thread_s=estimate(taken["thread"]).value if "thread" in taken else None,
        ours_s=estimate(taken["ours"]).value,
        cost_s=found.difference_s,
        ratio=found.ratio,
        verdict=None if bar is None else verdict(taken["ours"], reference, bar),
        calls_per_sample=samples.call_count,
        samples_s=dict(taken),
    )


def _sides(place: Place, case: Case) -> list[VerbSide]:
    peer, ours = place.peer, place.ours
    theirs = Hands(in_thread(peer.put, FILLING_CONCURRENCY), in_thread(peer.delete, FILLING_CONCURRENCY))
    own = Hands(Awaited(ours.put), Awaited(ours.delete))
    callers: list[tuple[str, Caller, Hands]] = [("plain", Blocking(getattr(peer, case.verb)), theirs)]
    if case.verb == "data_file":
        callers.append(("ours", Blocking(ours.data_file), own))
    else:
        if place.has_hop:
            callers.append(("thread", in_thread(getattr(peer, case.verb), case.concurrency), theirs))
        callers.append(("ours", Awaited(getattr(ours, case.verb)), own))
    unique = f"{case.verb}-{case.data_bytes}-{case.object_count}-{case.concurrency}"
    return [VerbSide(name, case, caller, hands, f"{unique}/{name}") for name, caller, hands in callers]
