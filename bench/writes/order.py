"""Requests to a worker and its answers: lines of JSON."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Literal

from tallymark.bench.writes.process_tree import Spent

Kill = Literal["executor", "job"]

Figures = Mapping[str, float | str]

PLAN_ERROR = "plan_error_p95"
"""Of the files of a write whose sizes were planned: |size - planned| / planned that 95 of 100 do not exceed."""

Policy = Literal["balanced", "hudi", "off"]


@dataclass(frozen=True, slots=True, kw_only=True)
class FileSizes:
    """How large files are to be."""

    policy: Policy
    """Ours; a peer has its own way."""
    max_file_bytes: int
    small_file_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """One write."""

    source: str
    """A folder of Parquet files, as Spark takes it."""
    target: str
    mode: Literal["append", "overwrite", "upsert"]
    partition_by: tuple[str, ...] = ()
    partition_overwrite: Literal["static", "dynamic"] = "static"
    codec: str = "zstd"
    kill: Kill | None = None
    """What is killed while it is written."""
    sizes: FileSizes | None = None
    """None leaves them to the writer."""
    record_key: str | None = None
    """The column that identifies a row; the table is created with it, and an upsert goes by it."""
    order_by: str | None = None
    """The column that decides between two rows of one key."""

    def encode(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def decode(cls, line: str) -> "Order":
        fields = json.loads(line)
        sizes = None if fields["sizes"] is None else FileSizes(**fields["sizes"])
        return cls(**{**fields, "partition_by": tuple(fields["partition_by"]), "sizes": sizes})


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """What a write took. ``figures`` are what the writer itself has to say of it."""

    wall_s: float
    spent: Spent
    figures: Figures = field(default_factory=dict)

    @property
    def cpu_s(self) -> float:
        return self.spent.total_s

    def encode(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def decode(cls, line: str) -> "Done":
        fields = json.loads(line)
        return cls(wall_s=fields["wall_s"], spent=Spent(**fields["spent"]), figures=fields["figures"])
