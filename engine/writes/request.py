"""What a write is to do to the table, as its caller says it. How it goes about it is ``open_job.JobOptions``."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from tallymark.engine.errors import InvalidRequest

Mode = Literal["append", "overwrite"]
PartitionOverwrite = Literal["static", "dynamic"]


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteRequest:
    """Making one checks all that can be known before there is a table. Raises InvalidRequest."""

    mode: Mode
    partition_by: Sequence[str] = ()
    """As the caller gave it; empty where the table's own is meant. The table's properties say what is so."""
    partition_overwrite: PartitionOverwrite = "static"

    def __post_init__(self) -> None:
        if self.mode not in get_args(Mode):
            raise InvalidRequest(f"mode={self.mode!r}: say 'append' or 'overwrite'; there is no default")
        if self.partition_overwrite not in get_args(PartitionOverwrite):
            raise InvalidRequest(f"partition_overwrite={self.partition_overwrite!r}: say 'static' or 'dynamic'")
        _check_columns(self.partition_by)


def _check_columns(partition_by: Sequence[str]) -> None:
    if isinstance(partition_by, str):
        raise InvalidRequest(f"partition_by={partition_by!r} is one string; give a list: [{partition_by!r}]")
    if not isinstance(partition_by, Sequence) or not all(isinstance(column, str) for column in partition_by):
        raise InvalidRequest(f"partition_by={partition_by!r}: give a list of column names, such as ['month', 'day']")
