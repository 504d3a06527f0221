"""A look for conflicts fails once: are there more?"""

import threading
from collections.abc import Iterator

from tallymark.bench.defects import stored
from tallymark.bench.defects.answer import Finding
from tallymark.bench.defects.partitions import CASES, DETECTION, LOOKS, OLDER, PERIOD_MS, leave_older, refused
from tallymark.bench.defects.table import make_table
from tallymark.bench.defects.trial import Ground, Trial

[CONFLICT] = (case for case in CASES if case.is_conflict)

BROKEN_LOOKS = 3


def findings(ground: Ground) -> Iterator[Finding]:
    yield Finding(
        trial="detector",
        side="Tallymark",
        tried="",
        shown="not tried",
        seen="it looks for conflicts at the commit and has no task that looks for them meanwhile",
    )
    if ground.has_hudi:
        yield _hudi(ground)


def _hudi(ground: Ground) -> Finding:
    table = make_table(ground.table("detector"))
    leave_older(table, CONFLICT.older)
    unreadable = stored.folder(table, OLDER) / "MARKERS7"
    unreadable.mkdir()
    side = ground.hudi(*DETECTION, told="early conflict detection")
    with side.server(table) as server:
        broken, _ = refused(server, CONFLICT.newer, BROKEN_LOOKS)
        unreadable.rmdir()
        threading.Event().wait(PERIOD_MS / 1000)
        found, asked = refused(server, CONFLICT.newer.replace("_", "_9"), LOOKS)
    return Finding(
        trial="detector",
        side=side.title,
        tried=f"{CONFLICT.told}, a conflict; one of the older writer's files cannot be read for {BROKEN_LOOKS} periods "
        f"of {PERIOD_MS} ms; then all can, for {LOOKS} periods",
        shown="no" if found else "yes",
        seen=f"`false` for {broken} markers while it could not be read, and for {found} of {asked} after that",
        counts={"refused_meanwhile": broken, "asked": asked, "refused": found},
    )


TRIAL = Trial(
    "detector",
    "The task that looks for conflicts ends for good with its first error, and no request says so.",
    findings,
)
