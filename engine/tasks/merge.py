"""Merge of one data file's rows with the changes of an upsert or delete, by position. Pure: no storage, no clock.

Changes are rows with the table's columns and two more, ``ROW`` and ``ACTION``. They arrive sorted by row (inserts
last), key and order columns, so that the changes of one row or key are neighbours and the file is read once.

Owns: which of several changes wins, and that no change reaches a row of another key. Does not own: finding the
positions, and writing.
"""

from collections.abc import Iterable, Iterator, Sequence
from enum import IntEnum
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from tallymark.engine.arrow.conform import conform
from tallymark.engine.errors import CorruptObject, InvalidRequest
from tallymark.engine.timeline.entry import DataFile

ROW = "_tallymark_row"
"""Column of changes: the position in the old file of the row to change, as int64; null for a key that is new there."""

ACTION = "_tallymark_action"
"""Column of changes: an ``Action``, as int8."""


class Action(IntEnum):
    """What a change does to the row at its position, or with its key if it has no position."""

    WRITE = 0
    """Replace the row, or insert one, unless the stored row is newer by the order columns."""
    DELETE = 1
    """Delete the row, unless the stored row is newer by the order columns."""
    FORCE_DELETE = 2
    """Delete the row without a comparison of order: a second row of one key, or a row that a predicate selects."""
    IGNORE = 3
    """Count the change as ignored, and nothing else; it neither wins over another change nor conflicts with one."""


NAMED_MAX = 5
"""Maximum number of keys that an error names."""

_INSERT = 2**63 - 1
"""The position of inserts during a merge, in place of null: they follow all rows of the file."""


class FileMerge:
    """The rows of one file with the changes applied to them in place, followed by the inserted rows.

    Of the changes of one row, or of one key that is new, the one that is greatest by the order columns wins; the others
    are ignored. Null is least. Changes of equal order have to be equal: two deletes of one action are, and two writes
    that are equal in all columns. Without order columns all changes of a row are of equal order.

    Each change is counted once. After ``finish``, the number of rows passed to ``apply`` is ``updated + deleted +
    inserted + ignored``, and the number of rows yielded is that of the file ``- deleted + inserted``.

    Memory contains one batch of old rows, its changed copy, one batch of changes, and one change of the batch before.
    """

    def __init__(
        self,
        schema: pa.Schema,
        old: DataFile | None = None,
        batches: Iterable[pa.RecordBatch] = (),
        *,
        key: Sequence[str],
        order_by: Sequence[str] = (),
    ) -> None:
        """``schema`` is the table's, of all rows that are yielded. ``batches`` are the rows of ``old`` in this schema;
        without them every change is an insert. ``key`` is empty where positions alone select rows to delete.
        """
        self._schema = schema
        self._old = old
        self._batches = iter(batches)
        self._key = list(key)
        self._order_by = list(order_by)
        self._sort_by = list(dict.fromkeys([ROW, *key, *order_by]))
        self._rows: pa.RecordBatch | None = None
        """Rows of the current batch that are not yielded yet."""
        self._start = 0
        """Position of the first of them."""
        self._last: list[pa.RecordBatch] = []
        """The last change, which the next batch of changes may supersede."""
        self.updated = 0
        """Old rows that were replaced."""
        self.deleted = 0
        """Old rows that were deleted."""
        self.inserted = 0
        """Rows that were added behind the old ones."""
        self.ignored = 0
        """Changes without effect: older than the stored row, superseded by another change, equal to one, a delete of a
        key that is not there, or ``Action.IGNORE``.
        """

    def apply(self, changes: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Yield the old rows, changed, up to the last change that no later batch can supersede; once there are inserts,
        all old rows, and those inserts.

        Consume all of it before the next call. All batches are of one schema, with key and order columns in the table's
        types. The other columns may be null in deletes, and missing if all changes are deletes.

        Raises:
            InvalidRequest: the changes are not sorted, differ although they are of equal order, have an unknown action,
                write without a key, or do not fit the schema.
            CorruptObject: a change names a position behind the file's last row, or the row of another key.
                After an error the merge cannot be continued.
        """
        changes = self._checked(changes)
        if not changes.num_rows:
            return
        waiting = pa.Table.from_batches([*self._last, changes])
        self._last = [changes.take(pa.array([changes.num_rows - 1]))]  # a copy: a slice would keep the whole batch
        yield from self._merged(self._winners(waiting))

    def finish(self) -> Iterator[pa.RecordBatch]:
        """Yield everything else: the rest of the old rows, and a last insert. Raises what ``apply`` raises."""
        if self._last:
            yield from self._merged(pa.Table.from_batches(self._last))
        yield from self._remaining()

    def _checked(self, changes: pa.RecordBatch) -> pa.RecordBatch:
        """Return the changes that do something, inserts at the position ``_INSERT``."""
        actions, rows = _column(changes, ACTION), _column(changes, ROW)
        if not _all(pc.is_in(actions, value_set=pa.array(list(Action), pa.int8()))):
            raise InvalidRequest(f"{ACTION} has a value that is not an Action: {actions.unique().to_pylist()}")
        if not self._key and _any(is_action(Action.WRITE, changes)):
            raise InvalidRequest(f"{ACTION} has writes, and only deletes need no key: give the key columns")
        changes = changes.set_column(changes.schema.get_field_index(ROW), ROW, pc.fill_null(rows, _INSERT))
        is_ignored = is_action(Action.IGNORE, changes)
        if not _any(is_ignored):
            return changes
        used = changes.filter(pc.invert(is_ignored))
        self.ignored += changes.num_rows - used.num_rows
        return used

    def _winners(self, changes: pa.Table) -> pa.Table:
        """Return the changes that no other supersedes, without the last."""
        earlier, later = changes.slice(0, changes.num_rows - 1), changes.slice(1)
        is_less, is_same = compared(later, earlier, [ROW, *self._key])
        self._check_sorted(is_less, earlier, later)
        if not _any(is_same):
            return earlier
        older, newer = earlier.filter(is_same), later.filter(is_same)
        is_less, is_tied = compared(newer, older, self._order_by)
        self._check_sorted(is_less, older, newer)
        self._check_ties(older.filter(is_tied), newer.filter(is_tied))
        self.ignored += older.num_rows
        return earlier.filter(pc.invert(is_same))

    def _merged(self, changes: pa.Table) -> Iterator[pa.RecordBatch]:
        inserts = _count(pc.equal(_column(changes, ROW), pa.scalar(_INSERT)))
        changes, inserted = changes.slice(0, changes.num_rows - inserts), changes.slice(changes.num_rows - inserts)
        while changes.num_rows:
            old, start = self._rows_at(changes), self._start
            count = _count(pc.less(_column(changes, ROW), pa.scalar(start + old.num_rows)))
            here, changes = changes.slice(0, count), changes.slice(count)
            end = old.num_rows if changes.num_rows else here.column(ROW)[-1].as_py() + 1 - start
            self._rows, self._start = old.slice(end), start + end
            yield from self._changed(old.slice(0, end), start, here)
        if inserts:
            yield from self._remaining()
            rows = inserted.filter(is_action(Action.WRITE, inserted))
            self.inserted += rows.num_rows
            self.ignored += inserts - rows.num_rows
            yield from self._table_rows(rows)

    def _rows_at(self, changes: pa.Table) -> pa.RecordBatch:
        """Return the batch of old rows to which these changes, or the first of them, are to be applied."""
        row = changes.column(ROW)[0].as_py()
        if row < self._start:
            raise self._misplaced(changes, "which is not a row of the file, or was changed under another key")
        while self._rows is None or not self._rows.num_rows:
            self._rows = next(self._batches, None)
            if self._rows is None:
                raise self._misplaced(changes, f"and the file has {self._start} rows")
        return self._rows

    def _changed(self, old: pa.RecordBatch, start: int, changes: pa.Table) -> Iterator[pa.RecordBatch]:
        """Yield these old rows, of which the first is at position ``start``, with the changes applied to them."""
        at = pc.subtract(_column(changes, ROW), start)
        stored = old.select(self._sort_by[1:]).take(at.combine_chunks())
        self._check_keys(stored, changes)
        is_older, _ = compared(changes, stored, self._order_by)
        is_older = pc.and_not(is_older, is_action(Action.FORCE_DELETE, changes))
        is_write = is_action(Action.WRITE, changes)
        is_written, is_deleted = pc.and_not(is_write, is_older), pc.invert(pc.or_(is_write, is_older))
        updated, deleted = _count(is_written), _count(is_deleted)
        self.updated += updated
        self.deleted += deleted
        self.ignored += changes.num_rows - updated - deleted
        if not updated and not deleted:
            yield old
            return
        written = changes if updated == changes.num_rows else changes.filter(is_written)
        rows = _replaced(old, list(self._table_rows(written)), at.filter(is_written), at.filter(is_deleted))
        if rows.num_rows:
            yield rows

    def _table_rows(self, changes: pa.Table) -> Iterator[pa.RecordBatch]:
        for batch in changes.drop_columns([ROW, ACTION]).to_batches() if changes.num_rows else ():
            yield conform(batch, self._schema)

    def _remaining(self) -> Iterator[pa.RecordBatch]:
        if self._rows is not None and self._rows.num_rows:
            yield self._rows
        self._rows = None
        yield from self._batches

    def _check_sorted(self, is_less: Any, earlier: pa.Table, later: pa.Table) -> None:
        """Check that nothing is less than its predecessor."""
        if _any(is_less):
            first, second = (rows.filter(is_less).select(self._sort_by)[:1] for rows in (earlier, later))
            raise InvalidRequest(
                f"changes of {self._path} are not sorted: ({described(second)}) follows ({described(first)}); sort "
                f"them by {', '.join(self._sort_by)}, null last in {ROW} and first in the order columns"
            )

    def _check_ties(self, older: pa.Table, newer: pa.Table) -> None:
        """Check that changes of one row and equal order are equal."""
        if not newer.num_rows:
            return
        given = [name for name in self._schema.names if name in newer.schema.names]
        is_other_action = pc.not_equal(_column(older, ACTION), _column(newer, ACTION))
        is_other_row = pc.and_not(is_action(Action.WRITE, newer), _are_equal(older, newer, given))
        is_unequal = pc.or_(is_other_action, is_other_row)
        if _any(is_unequal):
            unequal = newer.filter(is_unequal).select(self._key or [ROW])
            equal = f"are equal in order_by ({', '.join(self._order_by)})" if self._order_by else "have no order_by"
            raise InvalidRequest(
                f"changes of one key differ and {equal}, so that none of them wins: {described(unequal)}; add a column "
                "to order_by that decides, or deduplicate the rows"
            )

    def _check_keys(self, stored: pa.RecordBatch, changes: pa.Table) -> None:
        """Check that each change is of the key that is stored at its position."""
        _, is_same = compared(stored, changes, self._key)
        if not _all(is_same):
            first = pc.index(is_same, False).as_py()
            other = described(stored.slice(first, 1).select(self._key))
            raise self._misplaced(changes.slice(first), f"which is of {other}")

    def _misplaced(self, changes: pa.Table, problem: str) -> CorruptObject:
        """Return the error for the first of these changes."""
        first = changes.slice(0, 1)
        of_key = f" of {described(first.select(self._key))}" if self._key else ""
        return CorruptObject(
            f"{self._path}: a change{of_key} names row {first.column(ROW)[0]}, {problem}; run the write again, which "
            "looks its keys up again, and inspect the file if it fails in the same way"
        )

    @property
    def _path(self) -> str:
        return "a new file" if self._old is None else self._old.path


def _column(rows: Any, name: str) -> Any:
    return rows.column(name)


def is_action(action: Action, changes: Any) -> Any:
    """Return which of the changes are of this action."""
    return pc.equal(_column(changes, ACTION), pa.scalar(action, pa.int8()))


def compared(left: Any, right: Any, columns: Sequence[str]) -> tuple[Any, Any]:
    """Return where rows on the left are less than those on the right, and where they are equal, column by column.

    Null is least, and equal to null. The columns are of types that Arrow orders, and not floating.
    """
    is_less, is_equal = pa.repeat(False, left.num_rows), pa.repeat(True, left.num_rows)
    for name in columns:
        ours, theirs = left.column(name), right.column(name)
        less, equal = pc.less(ours, theirs), pc.equal(ours, theirs)
        if ours.null_count or theirs.null_count:
            less = pc.or_(pc.fill_null(less, False), pc.and_(ours.is_null(), theirs.is_valid()))
            equal = pc.or_(pc.fill_null(equal, False), pc.and_(ours.is_null(), theirs.is_null()))
        is_less, is_equal = pc.or_(is_less, pc.and_(is_equal, less)), pc.and_(is_equal, equal)
        if not _any(is_equal):
            break
    return is_less, is_equal


def _are_equal(left: pa.Table, right: pa.Table, columns: Sequence[str]) -> Any:
    """Return where rows are equal in these columns of any type; null is equal to null, and NaN to NaN."""
    found: Any = pa.repeat(True, left.num_rows)
    for name in columns:
        ours, theirs = _column(left, name), _column(right, name)
        equal: Any
        if pa.types.is_nested(ours.type):
            # Arrow compares no nested values of many rows. Their texts differ where they do, and NaN has one.
            pairs = zip(ours.to_pylist(), theirs.to_pylist(), strict=True)
            equal = pa.array([repr(one) == repr(other) for one, other in pairs])
        else:
            equal = pc.or_(pc.fill_null(pc.equal(ours, theirs), False), pc.and_(ours.is_null(), theirs.is_null()))
            if pa.types.is_floating(ours.type):
                equal = pc.or_(equal, pc.fill_null(pc.and_(pc.is_nan(ours), pc.is_nan(theirs)), False))
        found = pc.and_(found, equal)
    return found


def _replaced(old: pa.RecordBatch, new: Sequence[pa.RecordBatch], replaced: Any, deleted: Any) -> pa.RecordBatch:
    """Return the old rows with the new ones at the positions ``replaced``, and without those at ``deleted``."""
    # Each row is taken by its index: the new ones come first, the old ones behind them. No index is out of bounds.
    assert sum(batch.num_rows for batch in new) == len(replaced)
    indices: Any = pc.cumulative_sum(pa.repeat(1, old.num_rows), start=pa.scalar(len(replaced) - 1))
    if len(replaced):
        is_here, number = _located(replaced, old.num_rows)
        indices = pc.if_else(is_here, number, indices)
    if len(deleted):
        is_here, _ = _located(deleted, old.num_rows)
        indices = indices.filter(pc.invert(is_here))
    columns = []
    for name in old.schema.names:
        values = pa.concat_arrays([*(batch.column(name) for batch in new), old.column(name)])
        columns.append(pc.take(values, indices, boundscheck=False))
    return pa.RecordBatch.from_arrays(columns, schema=old.schema)


def _located(at: Any, rows: int) -> tuple[Any, Any]:
    """Return for each of this many rows whether it is at one of the positions, which are ascending and distinct, and
    how many positions are less.
    """
    bounds = pa.concat_arrays([pa.array([0]), pc.add(at, 1).combine_chunks(), pa.array([rows + 1])])
    # The list that a value is in, of lists that end behind the positions, is the number of positions that are less.
    less = pc.list_parent_indices(pa.LargeListArray.from_arrays(bounds, pa.nulls(rows + 1)))
    return pc.not_equal(less.slice(0, rows), less.slice(1)), less.slice(0, rows)


def _any(values: Any) -> bool:
    return bool(pc.any(values).as_py())


def _all(values: Any) -> bool:
    return bool(pc.all(values, min_count=0).as_py())


def _count(values: Any) -> int:
    """Return how many are true."""
    return pc.sum(values).as_py() or 0


def described(rows: Any) -> str:
    """Return the distinct rows for an error: all, or the first of them and how many more."""
    texts = dict.fromkeys(
        ", ".join(f"{name}={None if name == ROW and value == _INSERT else value!r}" for name, value in row.items())
        for row in rows.to_pylist()
    )
    more = f" and {len(texts) - NAMED_MAX} more" if len(texts) > NAMED_MAX else ""
    return "; ".join(list(texts)[:NAMED_MAX]) + more
