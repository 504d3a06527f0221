"""The question ``backends``: what does a call through Tallymark cost over the bare library, on one store, in one run?

Owns: which sides there are. ``plain`` is the library's own call. ``thread`` is the same call in a worker thread of an
event loop: what any asynchronous program pays that must not stand still meanwhile, and what ours is held against.
``ours`` goes through ``open_backend``. A data file is written by blocking code on every side, as in a task.
"""

from collections.abc import Callable, Sequence

from tallymark.bench.answer import Row, Section
from tallymark.bench.caller import Awaited, Blocking, Caller, in_thread
from tallymark.bench.case import Case
from tallymark.bench.method import Method, take_samples
from tallymark.bench.paired import Bar
from tallymark.bench.places import Place
from tallymark.bench.verb_side import FILLING_CONCURRENCY, Hands, VerbSide

BAR = Bar(share=0.05, seconds=50e-6)
"""Ours may take a twentieth more than the library, or 50 us a call, whichever is larger."""


async def measured(
    place: Place, cases: Sequence[Case], method: Method, *, done: Callable[[Case], None] = lambda case: None
) -> Section:
    """One row a case; ``done`` is told after each."""
    await place.ours.open()
    rows = []
    for case in cases:
        rows.append(await _row(place, case, method))
        done(case)
    return Section(place.title, place.where, place.peer.name, tuple(rows))


async def _row(place: Place, case: Case, method: Method) -> Row:
    sides = _sides(place, case)
    samples = await take_samples(sides, method, call_count_max=case.call_count_max, step=case.step)
    hop = any(side.name == "thread" for side in sides)
    return Row(case.label, samples, "thread" if hop else "plain", BAR if place.has_hop else None, case.concurrency)


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
