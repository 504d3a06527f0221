"""A side in a case: one append after the other to a table of its own, and a look at what each leaves."""

import shutil
from pathlib import Path

from tallymark.bench.sizing.written.answer import WrittenRow
from tallymark.bench.sizing.written.case import WrittenCase
from tallymark.bench.sizing.written.folder import Folder, sizes_of
from tallymark.bench.sizing.written.sides import WrittenSide
from tallymark.bench.writes.hands import Hands
from tallymark.bench.writes.order import Done, FileSizes, Order

PARTITION_BY = ("p",)


class WrittenTurn:
    def __init__(self, side: WrittenSide, hands: Hands, case: WrittenCase, *, target: Path, title: str) -> None:
        self.side = side
        self._hands = hands
        self._case = case
        self._target = target
        self._title = title
        self._folder = Folder(target)
        self._done: list[Done] = []

    def warm_up(self, source: Path) -> None:
        """An append to another table, which goes. Raises SideFailed."""
        scratch = self._target.with_name(f"{self._target.name}-warm-up")
        try:
            self._hands.write(self._order(source, scratch))
        finally:
            shutil.rmtree(scratch, ignore_errors=True)

    def append(self, source: Path) -> None:
        """Raises SideFailed."""
        self._done.append(self._hands.write(self._order(source, self._target)))
        self._folder.look()

    def row(self) -> WrittenRow:
        """What its readers see in the end. Raises SideFailed, also where they do not see every row."""
        rows, urls = self._hands.look(str(self._target))
        return WrittenRow(
            side=self.side.name,
            title=self._title,
            done=tuple(self._done),
            rows=rows,
            files=tuple(sizes_of(urls)),
            landed=tuple(self._folder.landed),
        )

    def remove(self) -> None:
        shutil.rmtree(self._target, ignore_errors=True)

    def _order(self, source: Path, target: Path) -> Order:
        sizes = FileSizes(
            policy=self.side.policy,
            max_file_bytes=self._case.max_file_bytes,
            small_file_bytes=self._case.small_file_bytes,
        )
        return Order(source=source.as_uri(), target=str(target), mode="append", partition_by=PARTITION_BY, sizes=sizes)
