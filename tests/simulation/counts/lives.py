"""Counts of tables that are replaced beside their jobs, and of markers that others have changed."""

from tests.history import Landed, Told
from tests.simulation.history_index import HistoryIndex
from tests.table_invariants import LOG, decisions, entry_fields


def void_entries(index: HistoryIndex) -> int:
    """Entries of jobs that outlived their table, and that landed among those of its new life."""
    if len(index.lives) < 2:
        return 0
    own = {entry["nonce"] for entry in decisions(index.swept).values()}
    last = index.lives[-1]
    landed = (event for event in last.history.of(Landed) if event.path.startswith(LOG) and event.path in index.swept)
    fields = (entry_fields(event.data) for event in landed)
    return sum(entry["nonce"] not in own and entry.get("instant") in last.outliving for entry in fields)


def learned(index: HistoryIndex) -> int:
    """Jobs that were told that their table is another one."""
    return sum(event.outcome == "TableReplaced" for event in index.whole.of(Told))
