"""An answer for people: a table for each thing that was killed."""

from rich import box
from rich.console import Console
from rich.table import Table

from tallymark.bench.killed.answer import KilledAnswer
from tallymark.bench.killed.folder import Remains

METHOD = """\
Every side appends {rows:,} rows in four tasks to a table of its own that holds as many; on local disk. The third task
hands on half of its rows and then kills, by SIGKILL: its executor (of two on a standalone cluster; Spark starts another
and runs its tasks again), or the user's Python and the driver with all tasks (the next write is an undisturbed append).
Left are data files that the side's own reader reads nothing of, and what else lies where only running jobs keep things.
"""


def show(page: Console, answer: KilledAnswer) -> None:
    page.print(f"{answer.machine}\n")
    page.print(METHOD.format(rows=answer.rows_a_write))
    for table in tables(answer):
        page.print(table)
    for title, reason in answer.absent.items():
        page.print(f"  without {title}: {reason}")


def tables(answer: KilledAnswer) -> list[Table]:
    writes, rows = answer.rows_a_write, answer.rows
    return [
        _table("an executor killed, the job committed", [(row.title, row.executor, 2 * writes) for row in rows]),
        _table("the job killed", [(row.title, row.job, writes) for row in rows]),
        _table("and after the next write", [(row.title, row.job_then, 2 * writes) for row in rows]),
    ]


def _table(title: str, found: list[tuple[str, Remains, int]]) -> Table:
    page = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD)
    page.add_column("")
    for name in ("its reader sees", "a directory scan sees", "data files left", "bytes of them", "other files left"):
        page.add_column(name, justify="right")
    for side, remains, expected in found:
        page.add_row(
            side,
            _rows(remains.rows, expected),
            _rows(remains.directory_rows, expected),
            *(f"{number:,}" for number in (remains.files, remains.bytes, remains.temporary)),
        )
    return page


def _rows(found: int | None, expected: int) -> str:
    if found is None:
        return "an error"
    return "right" if found == expected else f"{found - expected:+,} rows"
