"""Request of a write: what it does to the table. How the job runs is in ``open_job.JobOptions``."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Literal, TypedDict, Unpack, get_args

from tallymark.engine.errors import InvalidRequest
from tallymark.engine.timeline.properties import Readers
from tallymark.engine.timeline.table_key import KeyRequest, UniqueIn

Mode = Literal["append", "overwrite", "upsert", "delete"]
WhenMatched = Literal["update", "keep", "fail"]
PartitionOverwrite = Literal["static", "dynamic"]

TXN_LENGTH = 1000
"""Maximum length of a txn in characters, since it is stored in its log entry. Three Airflow ids of 250 each fit."""


class WriteOptions(TypedDict, total=False):
    """What a write does to the table, beside its mode: the keywords that every ``write`` and ``plan`` takes.

    ``WriteRequest`` describes them.
    """

    partition_by: Sequence[str]
    partition: Mapping[str, object] | None
    partition_overwrite: PartitionOverwrite
    only_partitions: Mapping[str, object] | Sequence[Mapping[str, object]] | None
    base: int | None
    txn: str | None
    readers: Readers | None
    retain_hours: float | None
    record_key: str | Sequence[str] | None
    order_by: str | Sequence[str] | None
    unique_in: UniqueIn | None
    when_matched: WhenMatched
    delete_column: str | None
    where: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteRequest:
    """What a write does to the table. The constructor checks everything that can be checked without the table.

    Raises InvalidRequest.
    """

    mode: Mode
    partition_by: Sequence[str] = ()
    """As the caller gave it; empty for the table's own columns, which its properties have."""
    partition: Mapping[str, object] | None = None
    """Values of the first partition columns: all rows are written there, and with "overwrite" that part is replaced."""
    partition_overwrite: PartitionOverwrite = "static"
    only_partitions: Mapping[str, object] | Sequence[Mapping[str, object]] | None = None
    """Values of first partition columns, one or several sets: the write may touch nothing else."""
    base: int | None = None
    """The position of the log at which the caller has read the table; None for that at which the write starts."""
    txn: str | None = None
    """The name under which the write is committed exactly once, ``name:batch``."""
    readers: Readers | None = None
    """For the write that creates the table: whether replaced files are deleted or retained."""
    retain_hours: float | None = None
    """For the write that creates the table: how long they are retained."""
    record_key: str | Sequence[str] | None = None
    """For the write that creates the table: the columns whose values identify a row."""
    order_by: str | Sequence[str] | None = None
    """For the write that creates the table: the columns that decide between two rows of one key."""
    unique_in: UniqueIn | None = None
    """For the write that creates the table: where a key occurs once."""
    when_matched: WhenMatched = "update"
    """Of an upsert, whether a row whose key the table has replaces the stored one, is left out, or fails the write."""
    delete_column: str | None = None
    """Of an upsert, the boolean column, which is not stored, of rows that delete their key; null is false."""
    where: str | None = None
    """Of a delete, the rows that go, in the grammar of ``upsert.where``; None where their keys are given."""

    @classmethod
    def of(cls, mode: Mode, **options: Unpack[WriteOptions]) -> "WriteRequest":
        """Return the request. Raises TypeError for an unknown keyword."""
        known = WriteOptions.__annotations__
        if unknown := [name for name in options if name not in known]:
            near = get_close_matches(unknown[0], known)
            remedy = f"did you mean {near[0]!r}?" if near else f"a write takes {', '.join(known)}"
            raise TypeError(f"unexpected keyword {unknown[0]!r}: {remedy}")
        return cls(mode=mode, **options)

    def __post_init__(self) -> None:
        if self.mode not in get_args(Mode):
            raise InvalidRequest(
                f"mode={self.mode!r}: say 'append' or 'overwrite', or 'upsert' or 'delete' for a table with a record "
                "key; there is no default"
            )
        if self.partition_overwrite not in get_args(PartitionOverwrite):
            raise InvalidRequest(f"partition_overwrite={self.partition_overwrite!r}: say 'static' or 'dynamic'")
        _check_columns(self.partition_by)
        if self.partition is not None:
            _check_part("partition", self.partition)
        if self.only_partitions is not None:
            _check_allowed(self.allowed)
        if self.base is not None:
            _check_base(self.base, self.mode)
        if self.txn is not None:
            _check_txn(self.txn)
        _check_matched(self.mode, self.when_matched, self.delete_column)
        if self.where is not None:
            _check_where(self)
        self.key  # noqa: B018 # it checks itself

    @property
    def has_changes(self) -> bool:
        """Whether single rows of the table are updated or deleted."""
        return self.mode in ("upsert", "delete")

    @property
    def is_keyed(self) -> bool:
        """Whether these are found by their key."""
        return self.has_changes and self.where is None

    @property
    def key(self) -> KeyRequest:
        return KeyRequest(record_key=self.record_key, order_by=self.order_by, unique_in=self.unique_in)

    @property
    def allowed(self) -> Sequence[Mapping[str, object]]:
        """``only_partitions`` as a list, however it was given."""
        given = self.only_partitions
        if given is None:
            return ()
        return (given,) if isinstance(given, Mapping) else given


def _check_matched(mode: Mode, when_matched: WhenMatched, delete_column: str | None) -> None:
    if when_matched not in get_args(WhenMatched):
        raise InvalidRequest(f"when_matched={when_matched!r}: say 'update', 'keep' or 'fail'")
    given: dict[str, str] = {"when_matched": when_matched} if when_matched != "update" else {}
    given |= {"delete_column": delete_column} if delete_column is not None else {}
    for keyword, value in given.items() if mode != "upsert" else ():
        raise InvalidRequest(f"{keyword}={value!r} is for mode='upsert', and this is {mode!r}; leave it out")
    if len(given) > 1:
        raise InvalidRequest(
            f"when_matched={when_matched!r} leaves stored rows as they are, and delete_column={delete_column!r} "
            "deletes some; give one of the two"
        )


def check_where(where: object) -> None:
    """Check that a predicate is a text. Raises InvalidRequest."""
    if not isinstance(where, str):
        raise InvalidRequest(f'where={where!r}: give a text, such as "user_id = 7"')


def _check_where(request: WriteRequest) -> None:
    check_where(request.where)
    if request.mode != "delete":
        raise InvalidRequest(f"where is for mode='delete', and this is {request.mode!r}; leave it out")
    if request.partition is not None:
        raise InvalidRequest(f"partition={request.partition!r}: compare the partition columns in where")


def _check_columns(partition_by: Sequence[str]) -> None:
    if isinstance(partition_by, str):
        raise InvalidRequest(f"partition_by={partition_by!r} is one string; give a list: [{partition_by!r}]")
    if not isinstance(partition_by, Sequence) or not all(isinstance(column, str) for column in partition_by):
        raise InvalidRequest(f"partition_by={partition_by!r}: give a list of column names, such as ['month', 'day']")


def _check_part(keyword: str, given: object) -> None:
    if not isinstance(given, Mapping) or not given or not all(isinstance(name, str) for name in given):
        raise InvalidRequest(
            f"{keyword}={given!r}: give values of first partition columns, such as {{'year': 2013}}, or leave it out"
        )


def _check_allowed(only_partitions: object) -> None:
    if isinstance(only_partitions, str) or not isinstance(only_partitions, Sequence) or not only_partitions:
        raise InvalidRequest(
            f"only_partitions={only_partitions!r}: give one part of the table that may be touched, such as "
            "{'year': 2013}, or a list of those; left out, everything may be"
        )
    for part in only_partitions:
        _check_part("only_partitions", part)


def _check_base(base: object, mode: Mode) -> None:
    if not isinstance(base, int) or isinstance(base, bool) or base < 0:
        raise InvalidRequest(f"base={base!r}: give a position of the log, 0 or more, such as snapshot.position")
    if mode == "append":
        raise InvalidRequest(f"base={base}: an append replaces nothing that was read, whatever it was; leave base out")
    if mode != "overwrite":
        raise InvalidRequest(f"base={base}: mode={mode!r} reads the rows that it changes itself; leave base out")


def _check_txn(txn: str) -> None:
    rule = "give a text such as 'job:batch', both parts printable and neither empty nor with blanks around it"
    name, _, batch = txn.partition(":") if isinstance(txn, str) else ("", "", "")
    if not all(part and part.isprintable() and part == part.strip() for part in (name, batch)):
        raise InvalidRequest(f"txn={txn!r}: {rule}")
    if len(txn) > TXN_LENGTH:
        raise InvalidRequest(f"txn={txn[:40]!r}... has {len(txn):,} characters; {TXN_LENGTH:,} are the most")
