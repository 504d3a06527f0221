"""Jobs on a table.

The way of a write: ``table.write`` -> ``prepare`` -> ``begin`` -> ``help`` others -> tasks -> ``write_job.commit``:
seal and ``exclude`` losers -> win the log entry -> ``project`` -> ``finish``. The other way out is ``rollback``.
"""

from tallymark.engine.writes.clean import CleanResult
from tallymark.engine.writes.explanation import Explanation
from tallymark.engine.writes.file_sizes import FileSizes
from tallymark.engine.writes.incoming import CountedRows
from tallymark.engine.writes.plan import WritePlan
from tallymark.engine.writes.result import WriteResult
from tallymark.engine.writes.rollback import Ended
from tallymark.engine.writes.snapshot import Snapshot
from tallymark.engine.writes.status import OpenInstant, TableStatus
from tallymark.engine.writes.table import Table, open_table
from tallymark.engine.writes.write_job import WriteJob

__all__ = [
    "open_table",
    "Table",
    "WriteJob",
    "WriteResult",
    "Snapshot",
    "TableStatus",
    "OpenInstant",
    "CleanResult",
    "Ended",
    "FileSizes",
    "Explanation",
    "WritePlan",
    "CountedRows",
]
