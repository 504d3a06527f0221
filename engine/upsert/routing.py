"""Routing of changes: what is to be done with each row of a batch, and which task does it. Arrow in, Arrow out.

For engines whose rows are in Arrow; the PySpark glue does the same in the JVM. All rows of a key go to one task, whose
merge decides which of them wins.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from tallymark.backends import Backend
from tallymark.engine.errors import InvalidRequest
from tallymark.engine.partitions.index import PartitionIndex
from tallymark.engine.partitions.path import partition_values
from tallymark.engine.sizing.plan import PlannedFile
from tallymark.engine.tasks.changes import HASH
from tallymark.engine.tasks.merge import ACTION, ROW, Action, compared, described, is_action
from tallymark.engine.tasks.row_buffer import value_counts
from tallymark.engine.tasks.table_rows import change_rows, change_schema
from tallymark.engine.tasks.ticket import WriteTicket
from tallymark.engine.upsert.keys import key_of
from tallymark.engine.upsert.locate import FILE, Lookup, hit_schema, is_hit, locate_task

Tasks = Sequence[Sequence[PlannedFile]]

_AT, _PATH, _PLACE = "_tallymark_at", "_tallymark_path", "_tallymark_place"


def routed(
    ticket: WriteTicket,
    batches: Iterable[pa.RecordBatch] | pa.Table,
    hits: Iterable[pa.RecordBatch],
    tasks: Tasks,
    *,
    keep: bool = False,
    delete: Any = False,
) -> list[pa.Table]:
    """Return the changes of each task, sorted as ``write_task`` takes them; of one task where nothing is planned.

    ``batches`` are all rows of the write, and may have ``HASH``. ``hits`` are those that its lookups have found, and
    ``tasks`` the planned files of each task (``tasks_of``). ``delete`` is a boolean array of the rows that delete their
    key, or True for all: then they do so whatever their order. With ``keep`` a row whose key is there is left out.
    A delete by ``where`` has no batches: the hits are deleted, but for those in files that no task has, since all rows
    of these match.

    Raises:
        InvalidRequest: a row does not fit the table, ``delete`` does not fit the rows, or two of one key are in
            different partitions and nothing decides between them.
    """
    if ticket.where is not None:
        return _by_task(ticket, _matches(ticket, hits, tasks), tasks or [[]])
    batches = batches.to_batches() if isinstance(batches, pa.Table) else batches
    rows = _rows(ticket, batches, may_lack=delete is True)
    schema = hit_schema(ticket)
    found = pa.Table.from_batches([batch.cast(schema) for batch in hits], schema)
    found = found.filter(is_hit(found))
    if delete is True:
        actions: Any = pa.repeat(pa.scalar(Action.FORCE_DELETE, pa.int8()), rows.num_rows)
    else:
        if not isinstance(delete, bool):
            _check_flags(delete, rows.num_rows)
        flags = pa.repeat(delete, rows.num_rows) if isinstance(delete, bool) else pc.fill_null(delete, False)
        actions = pc.cast(flags, pa.int8())
    rows = rows.append_column(ROW, pa.nulls(rows.num_rows, pa.int64())).append_column(ACTION, actions)
    changes = _Router(ticket, keep=keep).changes(rows, found)
    return _by_task(ticket, changes, tasks or [[]])


def _check_flags(delete: Any, rows: int) -> None:
    if (
        not isinstance(delete, pa.Array | pa.ChunkedArray)
        or not pa.types.is_boolean(delete.type)
        or len(delete) != rows
    ):
        given = getattr(delete, "type", type(delete).__name__)
        raise InvalidRequest(
            f"delete is {len(delete):,} values of {given}, and the batches have {rows:,} rows; give an Arrow array of "
            "one boolean per row"
        )


def deletes_of(ticket: WriteTicket, hits: pa.RecordBatch) -> pa.RecordBatch:
    """Return changes that delete the rows of these hits, in their order."""
    hits = hits.filter(is_hit(hits))
    files: Any = hits.column(FILE).dictionary_encode()
    folders = _folders(files.dictionary.to_pylist())
    values = [partition_values(folder, ticket.schema, ticket.partition_by) for folder in folders]
    columns: list[Any] = [
        pa.array([found[name] for found in values], ticket.schema.field(name).type).take(files.indices)
        for name in ticket.partition_by
    ]
    actions = pa.repeat(pa.scalar(Action.FORCE_DELETE, pa.int8()), hits.num_rows)
    return pa.RecordBatch.from_arrays([*columns, hits.column(ROW), actions], [*ticket.partition_by, ROW, ACTION])


def deletes_in(
    ticket: WriteTicket, files: Iterable[PlannedFile], *, backend: Backend | None = None
) -> Iterator[pa.RecordBatch]:
    """Yield the changes of a task of a delete by predicate, which looks the rows of its files up itself: they need not
    be kept since the plan. Raises as ``locate_task``.
    """
    lookup = Lookup(tuple(file.fill for file in files if file.fill is not None))
    yield from (deletes_of(ticket, hits) for hits in locate_task(ticket, lookup, backend=backend))


def _matches(ticket: WriteTicket, hits: Iterable[pa.RecordBatch], tasks: Tasks) -> pa.Table:
    """Return deletes of the hits in planned files, each with its ``FILE`` and partition path."""
    planned = pa.array([file.fill.path for files in tasks for file in files if file.fill is not None], pa.string())
    parts: list[pa.Table] = []
    for batch in (pa.RecordBatch.from_pylist([], hit_schema(ticket)), *hits):
        files: Any = batch.column(FILE)
        is_planned = pc.is_in(files.dictionary, planned).take(files.indices)
        here = batch.filter(pc.and_(is_planned, is_hit(batch)))
        files = here.column(FILE)
        folders = pa.array(_folders(files.dictionary.to_pylist()), pa.string()).take(files.indices)
        deletes = pa.Table.from_batches([deletes_of(ticket, here)]).append_column(FILE, files)
        parts.append(deletes.append_column(_PATH, folders))
    return pa.concat_tables(parts)


def _rows(ticket: WriteTicket, batches: Iterable[pa.RecordBatch], *, may_lack: bool) -> pa.Table:
    """Return all rows in one schema, which has ``HASH`` if the batches have it; ``may_lack`` as for ``change_rows``."""
    schema = change_schema(ticket)
    hashed = schema.append(pa.field(HASH, pa.int64()))
    found: list[pa.RecordBatch] = []
    for batch in batches:
        if HASH in batch.schema.names:
            rows = change_rows(batch.drop_columns([HASH]), ticket, schema, may_lack=may_lack)
            hashes = pc.cast(batch.column(HASH), pa.int64(), safe=False)  # which keeps the checksum of unsigned ones
            found.append(rows.append_column(hashed.field(HASH), hashes))
        else:
            found.append(change_rows(batch, ticket, schema, may_lack=may_lack))
    return pa.Table.from_batches(found, hashed if found and HASH in found[0].schema.names else schema)


class _Router:
    """Rows and hits in, changes out: the rows with their positions, and further deletes; ``FILE`` is where."""

    def __init__(self, ticket: WriteTicket, *, keep: bool) -> None:
        key = key_of(ticket)
        self._ticket = ticket
        self._keep = keep
        self._key = list(key.record_key)
        self._order = list(key.order_by)
        self._may_move = key.unique_in == "table" and bool(ticket.partition_by)
        self._same = [*self._key, *([] if key.unique_in == "table" or not ticket.partition_by else [_PATH])]
        """Columns in which a row equals the hits of its key."""
        moving = [_PATH, *dict.fromkeys([*ticket.partition_by, *self._order])] if self._may_move else []
        self._of_hit = [FILE, ROW, *moving]
        """Columns of the hit of a row's key that decide what is done with the row."""

    def changes(self, rows: Any, hits: Any) -> Any:
        rows = rows.append_column(_PATH, _paths(rows, self._ticket))
        if self._may_move:
            rows = self._without_rivals(rows)
        files, hits = _by_age(hits)
        stored, others = self._stored(hits)
        number = _places_in(stored, rows, self._same)
        hit = stored.select(self._of_hit).take(number)
        is_there = hit.column(FILE).is_valid()
        action = rows.column(ACTION)
        is_ignored = is_action(Action.IGNORE, rows)
        if self._keep:
            is_ignored = pc.or_(is_ignored, is_there)
        moved: Any = pa.nulls(rows.num_rows, pa.bool_()).fill_null(False)
        if self._may_move:
            is_away = pc.fill_null(pc.not_equal(hit.column(_PATH), rows.column(_PATH)), False)
            is_less, _ = compared(rows, hit, self._order)
            is_delete = is_action(Action.DELETE, rows)
            is_older = pc.and_(pc.or_(is_away, is_delete), is_less)
            is_ignored = pc.or_(is_ignored, pc.and_not(is_older, is_action(Action.FORCE_DELETE, rows)))
            moved = pc.and_not(is_away, is_ignored)
            # Its order is decided here: where the row is, the partition's columns are other ones.
            action = pc.if_else(is_delete, pa.scalar(Action.FORCE_DELETE, pa.int8()), action)
        is_write = is_action(Action.WRITE, rows)
        is_here = pc.and_not(is_there, pc.or_(is_ignored, pc.and_(moved, is_write)))
        action = pc.if_else(is_ignored, pa.scalar(Action.IGNORE, pa.int8()), action)
        changes = _set(rows, ACTION, action)
        changes = _set(changes, ROW, pc.if_else(is_here, hit.column(ROW), pa.scalar(None, pa.int64())))
        changes = changes.append_column(FILE, pc.if_else(is_here, hit.column(FILE), pa.scalar(None, pa.int32())))
        if self._may_move:  # a delete goes where the row is
            away = pc.and_(is_here, moved)
            for name in (_PATH, *self._ticket.partition_by):
                changes = _set(changes, name, pc.if_else(away, hit.column(name), changes.column(name)))
        gone = stored.take(pc.unique(number.filter(pc.and_(moved, is_write))))
        further = [gone] if self._keep else [gone, others]  # keep rewrites nothing, not even for a doubled key
        changes = pa.concat_tables([changes, *(self._deletes(table, changes.schema) for table in further)])
        at = pa.DictionaryArray.from_arrays(changes.column(FILE).combine_chunks(), pa.array(files, pa.string()))
        return changes.drop_columns([FILE]).append_column(FILE, at)

    def _without_rivals(self, rows: Any) -> Any:
        """Return the rows where of each key in several partitions only the greatest by order have an effect."""
        rows = _sorted(rows, self._key, self._order)
        if not rows.num_rows:
            return rows
        earlier, later = rows.slice(0, rows.num_rows - 1), rows.slice(1)
        _, is_same = compared(later, earlier, self._key)
        _, is_tied = compared(earlier, later, self._order)
        is_tied = pc.and_(is_same, is_tied)
        # Rows of one key and order have one rank; those below the last of their key are superseded.
        key, rank = _numbered(is_same), _numbered(is_tied)
        last = rank.filter(pa.concat_arrays([*_chunks(pc.invert(is_same)), pa.array([True])]))
        is_superseded = pc.not_equal(rank, last.take(key))
        self._check_rivals(earlier, later, pc.and_not(is_tied, is_superseded.slice(1)))
        ignored = pa.scalar(Action.IGNORE, pa.int8())
        return _set(rows, ACTION, pc.if_else(is_superseded, ignored, rows.column(ACTION)))

    def _check_rivals(self, earlier: Any, later: Any, is_tied: Any) -> None:
        """Check that tied rows of one key all delete it, wherever it is, or are all in one partition."""
        is_elsewhere = pc.not_equal(earlier.column(_PATH), later.column(_PATH))
        is_earlier, is_later = (is_action(Action.WRITE, rows) for rows in (earlier, later))
        rivals = pc.and_(is_tied, pc.or_(pc.xor(is_earlier, is_later), pc.and_(is_elsewhere, is_later)))
        if pc.any(rivals).as_py():
            raise undecided(later.filter(rivals).select(self._key))

    def _stored(self, hits: Any) -> tuple[Any, Any]:
        """Return the hit of each key that counts as its row, the newest, and all others."""
        hits = hits.sort_by([*((name, "ascending") for name in self._same), (FILE, "ascending"), (ROW, "ascending")])
        _, is_same = compared(hits.slice(1), hits.slice(0, max(0, hits.num_rows - 1)), self._same)
        if not pc.any(is_same).as_py():
            return hits, hits.slice(0, 0)
        is_other = pa.concat_arrays([pa.array([False]), *_chunks(is_same)])
        return hits.filter(pc.invert(is_other)), hits.filter(is_other)

    def _deletes(self, hits: pa.Table, schema: pa.Schema) -> pa.Table:
        """Return changes that delete these rows."""
        columns: list[Any] = []
        for field in schema:
            if field.name == ACTION:
                columns.append(pa.repeat(pa.scalar(Action.FORCE_DELETE, pa.int8()), hits.num_rows))
            elif field.name in hits.schema.names:
                columns.append(hits.column(field.name))
            else:
                columns.append(pa.nulls(hits.num_rows, field.type))
        return pa.table(columns, schema=schema)


def _by_age(hits: Any) -> tuple[list[str], Any]:
    """Return the files of these hits, the newest first, and the hits, with the numbers of their files as ``FILE``."""
    found = hits.column(FILE).combine_chunks()
    paths = found.dictionary.to_pylist()
    files = sorted(sorted(paths), key=lambda path: re.sub(r".*_([0-9]*)\.[^.]*$", r"\1", path), reverse=True)
    number = {path: place for place, path in enumerate(files)}
    numbers = pa.array([number[path] for path in paths], pa.int32()).take(found.indices)
    folders = pa.array(_folders(files), pa.string()).take(numbers)
    return files, hits.drop_columns([FILE]).append_column(FILE, numbers).append_column(_PATH, folders)


def _places_in(stored: pa.Table, rows: pa.Table, columns: Sequence[str]) -> Any:
    """Return for each row the place of the stored row that is equal in these columns, or null."""
    if len(columns) == 1:
        [name] = columns
        return pc.index_in(rows.column(name), value_set=stored.column(name))
    asked = rows.select(columns).append_column(_AT, _count_up(rows.num_rows))
    there = stored.select(columns).append_column(_PLACE, _count_up(stored.num_rows))
    return asked.join(there, keys=list(columns), join_type="left outer").sort_by(_AT).column(_PLACE)


def undecided(keys: Any) -> InvalidRequest:
    """Return the error for these keys, of each of which tied rows are in different partitions, or some delete it."""
    return InvalidRequest(
        "rows of one key are in different partitions or delete it, and order_by does not decide between them: "
        f"{described(keys)}; add a column to order_by that does, or deduplicate the rows"
    )


def _by_task(ticket: WriteTicket, changes: Any, tasks: Tasks) -> list[pa.Table]:
    """Return the changes of each task, sorted."""
    key = ticket.changed_by
    record_key, order_by = ((), ()) if key is None else (key.record_key, key.order_by)
    of_file = {
        file.fill.path: number
        for number, files in enumerate(tasks)
        for file in files
        if file.fill is not None and file.updates
    }
    files = changes.column(FILE).combine_chunks()
    numbers: Any = pa.array([of_file.get(path) for path in files.dictionary.to_pylist()], pa.int64())
    task = numbers.take(files.indices) if len(files) else pa.array([], pa.int64())
    changes = _sorted(changes.append_column(_AT, task), [_PATH, ROW, *record_key], order_by)
    task = pc.fill_null(changes.column(_AT), _of_inserts(changes, tasks, record_key))
    kept = [name for name in changes.schema.names if name not in (_AT, _PATH, FILE)]
    changes = changes.select(kept).take(pc.sort_indices(task))  # stable
    counts = value_counts(task)
    ends = list(accumulate(counts.get(number, 0) for number in range(len(tasks))))
    return [changes.slice(start, end - start) for start, end in zip([0, *ends], ends, strict=False)]


def _of_inserts(changes: Any, tasks: Tasks, record_key: Sequence[str]) -> "pa.Array[Any]":
    """Return a task for each row of changes sorted by partition, row and key: a partition's new rows in the order of
    their keys, as many for each as planned.
    """
    planned: defaultdict[str, list[tuple[int, int]]] = defaultdict(list)
    for number, files in enumerate(tasks):
        for file in files:
            planned[file.partition].append((number, file.rows))
    found: list[int] = []
    changes = changes.select([_PATH, ROW, *record_key])
    for path, count in value_counts(changes.column(_PATH)).items():
        here = changes.slice(len(found), count)
        new = pc.sum(here.column(ROW).is_null()).as_py() or 0
        found += [0] * (here.num_rows - new) + _shares(here.slice(here.num_rows - new), planned[path], record_key)
    return pa.array(found, pa.int64())


def _shares(new: pa.Table, planned: Sequence[tuple[int, int]], record_key: Sequence[str]) -> list[int]:
    """Return the task of each new row of one partition, which are sorted by key; rows of one key are not separated."""
    takers = [(task, rows) for task, rows in planned if rows] or list(planned[:1]) or [(0, 1)]
    total = sum(rows for _, rows in takers)
    ends = [new.num_rows * end // total if total else new.num_rows for end in accumulate(rows for _, rows in takers)]
    _, is_same = compared(new.slice(1), new.slice(0, max(0, new.num_rows - 1)), record_key)
    follows = [False, *is_same.to_pylist()]
    found: list[int] = []
    for (task, _), end in zip(takers, ends, strict=True):
        while end < new.num_rows and follows[end]:
            end += 1
        found += [task] * (end - len(found))
    return found + [takers[-1][0]] * (new.num_rows - len(found))


def _paths(rows: pa.Table, ticket: WriteTicket) -> Any:
    """Return the partition path of each row."""
    index = PartitionIndex(ticket.partition_by)
    numbers = [index.place(batch).numbers for batch in rows.to_batches() if batch.num_rows]
    if not numbers:
        return pa.array([], pa.string())
    codes = pa.concat_arrays(numbers)
    paths = pa.array([index.path(number) for number in range(pc.max(codes).as_py() + 1)])
    return paths.take(codes)


def _folders(files: Iterable[str]) -> list[str]:
    return [path.rpartition("/")[0] for path in files]


def _sorted(rows: pa.Table, columns: Sequence[str], order_by: Sequence[str]) -> pa.Table:
    """Return the rows sorted by these columns, null last in the former and first in the latter."""
    keys = [*columns]
    ordered = rows
    for name in order_by:
        ordered = ordered.append_column(f"_tallymark_valid_{name}", pc.cast(rows.column(name).is_valid(), pa.int8()))
        keys += [f"_tallymark_valid_{name}", name]
    return rows.take(pc.sort_indices(ordered, sort_keys=[(name, "ascending") for name in keys]))


def _count_up(count: int) -> Any:
    return pc.subtract(pc.cumulative_sum(pa.repeat(pa.scalar(1, pa.int64()), count)), 1)


def _numbered(is_as_before: Any) -> Any:
    """Return a number per row, counting from 0, which grows where a row, from the second on, is not as the one before
    it.
    """
    grows = pc.cast(pc.invert(is_as_before), pa.int64())
    return pc.cumulative_sum(pa.concat_arrays([pa.array([0], pa.int64()), *_chunks(grows)]))


def _chunks(values: Any) -> Sequence[Any]:
    return values.chunks if isinstance(values, pa.ChunkedArray) else [values]


def _set(table: pa.Table, name: str, column: Any) -> pa.Table:
    place = table.schema.get_field_index(name)
    return table.set_column(place, table.schema.field(name), column)
