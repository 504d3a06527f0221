"""What a writer is: a way of writing a DataFrame, ours or another's."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from tallymark.bench.writes.case import WriteCase
from tallymark.bench.writes.order import Figures, Order

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class Writer(Protocol):
    """Created in each process by its name; without state."""

    @property
    def title(self) -> str:
        """For people."""
        ...

    @property
    def jars(self) -> Sequence[str]:
        """Of Maven Central, beyond those of PySpark and of the place."""
        ...

    @property
    def sparks(self) -> tuple[str, ...]:
        """Releases of Spark, as ``4.2``, that the jars are built for; empty: any."""
        ...

    def conf(self, scratch: Path) -> Mapping[str, str]:
        """Settings of the session. ``scratch`` is a folder on local disk that goes at the end."""
        ...

    def absence(self, case: WriteCase, kind: str) -> str | None:
        """Why it takes no part in this case on such a place (``local``, ``s3``, ``hdfs``); None: it does."""
        ...

    def write(self, df: "DataFrame", order: Order) -> Figures:
        """Do it; on return the rows are visible. What it has to say of it is shown beside the times."""
        ...

    def read(self, session: "SparkSession", target: str) -> "DataFrame":
        """What its readers see."""
        ...
