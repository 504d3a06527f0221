"""Question ``killed``: what remains when an executor, or a whole job, is killed in the middle of a write."""

import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from subprocess import SubprocessError
from urllib.parse import unquote, urlsplit

import pyarrow as pa
import pyarrow.dataset as ds

from tallymark.bench.peers.writers import writer
from tallymark.bench.results import Table, column, size
from tallymark.bench.writes.data import Data
from tallymark.bench.writes.hands import Hands, SideFailed
from tallymark.bench.writes.killer import ROWS_BEFORE
from tallymark.bench.writes.order import Kill, Order
from tallymark.bench.writes.place import WritePlace, local
from tallymark.bench.writes.session import Unfit, hands_for

DATA = Data(rows=8 * ROWS_BEFORE, tasks=4)

ALONE = "local[2]"
"""Executor and driver in one JVM: all of it is killed."""

CLUSTER = "local-cluster[2,1,1024]"
"""Two executors of one core, each its own JVM."""

TEMPORARY = frozenset({"_temporary", ".temp", "open", "beat"})
"""Folders of what only a running job needs."""

METHOD = f"""\
Each side appends {DATA.rows:,} rows in four tasks to its own table, which contains as many already, on a local disk.
The third task writes half of its rows and then kills, by SIGKILL, its executor (one of two; Spark starts another and
repeats its tasks), or the user's Python and the driver with all tasks (the next write is an undisturbed append). What
remains: data files that the side's own reader reads nothing of, and files in folders of running jobs. A directory scan
is pyarrow's of all Parquet files without "_" or "." before a part of their path."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RemainsRow:
    title: str = column("")
    reader: str = column("its reader sees")
    scan: str = column("a directory scan sees")
    files: int = column("data files left")
    bytes: int = column("bytes of them", size)
    temporary: int = column("other files left")


def tables(
    sides: Sequence[str], parent: Path, pythons: Mapping[str, str], progress: Callable[[str], None]
) -> Iterator[Table]:
    """Measure below a folder. Nothing remains there."""
    found: list[tuple[RemainsRow, RemainsRow, RemainsRow]] = []
    absent: dict[str, str] = {}
    with tempfile.TemporaryDirectory(prefix="tallymark-bench-") as folder, local(parent) as place:
        source = Path(folder, "source")
        DATA.write(source)
        for name in sides:
            progress(f"killed: {name}")
            killing = Killing(name, place, source, pythons.get(name, sys.executable), Path(folder))
            try:
                found.append(killing.found())
            except (Unfit, SideFailed, OSError, SubprocessError) as error:
                absent[writer(name).title] = str(error).strip().partition("\n")[0]
    titles = ("an executor killed, the job committed", "the job killed", "and after the next write")
    for number, title in enumerate(titles):
        yield Table(title=title, rows=[each[number] for each in found], absent=absent if number == 2 else {})


@dataclass(frozen=True, slots=True)
class Killing:
    """One side on a disk."""

    name: str
    place: WritePlace
    source: Path
    python: str
    logs: Path

    def found(self) -> tuple[RemainsRow, RemainsRow, RemainsRow]:
        """Raise SideFailed, or Unfit, OSError or SubprocessError where the side cannot run."""
        with self._hands(CLUSTER) as hands:
            hands.write(self._order("executor"))
            hands.write(self._order("executor", "executor"))
            executor = self._remains(hands, "executor", 2 * DATA.rows)
        with self._hands(ALONE) as hands:
            hands.write(self._order("job"))
            with suppress(SideFailed):
                hands.write(self._order("job", "job"))
                raise AssertionError("the job was to be killed, and has ended")
        with self._hands(ALONE) as hands:
            job = self._remains(hands, "job", DATA.rows)
            hands.write(self._order("job"))
            return executor, job, self._remains(hands, "job", 2 * DATA.rows)

    @contextmanager
    def _hands(self, master: str) -> Iterator[Hands]:
        with hands_for(self.name, self.place, master=master, python=self.python, logs=self.logs) as hands:
            hands.begin()
            hands.await_session()
            yield hands

    def _target(self, table: Kill) -> str:
        return f"{self.place.url}/{self.name}-{table}"

    def _order(self, table: Kill, kill: Kill | None = None) -> Order:
        return Order(source=self.source.as_uri(), target=self._target(table), mode="append", kill=kill)

    def _remains(self, hands: Hands, table: Kill, expected: int) -> RemainsRow:
        title = f"{writer(self.name).title}, Spark {hands.spark}"
        return remains(title, Path(self._target(table)), *hands.look(self._target(table)), expected)


def remains(title: str, folder: Path, rows: int, read: Sequence[str], expected: int) -> RemainsRow:
    """``rows`` are those that readers see, ``read`` the URLs of the files with these rows."""
    known = {Path(unquote(urlsplit(url).path)).resolve() for url in read}
    found = [path for path in folder.rglob("*") if path.is_file()]
    data = [path for path in found if ".parquet" in path.name and path.suffix not in (".crc", ".CREATE")]
    unread = [path for path in data if path.resolve() not in known]
    others = set(found) - set(data)
    return RemainsRow(
        title=title,
        reader=_seen(rows, expected),
        scan=_seen(_directory_rows(folder), expected),
        files=len(unread),
        bytes=sum(path.stat().st_size for path in unread),
        temporary=sum(bool(TEMPORARY & set(path.relative_to(folder).parts[:-1])) for path in others),
    )


def _directory_rows(folder: Path) -> int | None:
    paths = [str(path) for path in folder.rglob("*.parquet") if not _is_hidden(path.relative_to(folder))]
    try:
        return ds.dataset(paths, format="parquet").count_rows() if paths else 0
    except (pa.ArrowInvalid, OSError):
        return None


def _is_hidden(path: Path) -> bool:
    return any(part.startswith(("_", ".")) for part in path.parts)


def _seen(found: int | None, expected: int) -> str:
    if found is None:
        return "an error"
    return "right" if found == expected else f"{found - expected:+,} rows"
