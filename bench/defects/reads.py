"""The markers of an instant are asked for while others are made."""

import threading
from collections.abc import Iterator

from tallymark.bench.defects import stored
from tallymark.bench.defects.answer import Finding
from tallymark.bench.defects.asking import asking
from tallymark.bench.defects.side import Side, Unanswered
from tallymark.bench.defects.trial import Ground, Trial

INSTANT = "20260101000000000"
READERS = 4
READS = 250
"""Of each reader."""


def findings(ground: Ground) -> Iterator[Finding]:
    if ground.has_hudi:
        yield _finding(ground, ground.hudi())
    yield Finding(
        trial="reads",
        side=ground.ours().title,
        tried="",
        shown="not tried",
        seen="its service answers no such question: the markers of an instant are read from storage, by who seals it",
    )


def _finding(ground: Ground, side: Side) -> Finding:
    table = ground.table("reads")
    failures: list[str] = []
    with side.server(table) as server:

        def read() -> None:
            for _ in range(READS):
                try:
                    server.names(INSTANT)
                except Unanswered as error:
                    failures.append(str(error)[:200])

        readers = [threading.Thread(target=read, daemon=True) for _ in range(READERS)]
        with asking(server, INSTANT, ground.clients) as askers:
            for reader in readers:
                reader.start()
            for reader in readers:
                reader.join()
        acked = {stored.line(path) for asker in askers for path in asker.acked}
        unnamed = len(acked - server.names(INSTANT))
    return Finding(
        trial="reads",
        side=side.title,
        tried=f"{READERS} readers ask for all markers {READS} times each while {ground.clients} clients make "
        f"{len(acked):,}",
        shown="yes" if failures or unnamed else "no",
        seen=f"{len(failures)} of {READERS * READS:,} answers were errors"
        + (f", such as {failures[0]}" if failures else "")
        + f"; in the end {unnamed} of the acked markers are not named",
        counts={"reads": READERS * READS, "failed": len(failures), "acked": len(acked), "unnamed": unnamed},
    )


TRIAL = Trial(
    "reads",
    "The set of markers is read without the lock that it is changed under: who asks for all of them while markers are "
    "made can be answered with an error.",
    findings,
)
