"""Guard of a write: the part of the table that ``only_partitions`` allows it to change."""

from dataclasses import dataclass

from tallymark.engine.errors import InvalidRequest
from tallymark.engine.partitions.static import StaticPartition

SHOWN = 3
"""Number of a guard's parts that an error names."""


@dataclass(frozen=True, slots=True)
class PartitionGuard:
    parts: tuple[StaticPartition, ...]

    def contains(self, partition: str) -> bool:
        """Return whether everything below a partition path, or a prefix of one, is allowed."""
        return any(part.contains(partition) for part in self.parts)

    def touches(self, part: StaticPartition) -> bool:
        """Return whether anything in that part of the table is allowed."""
        return any(mine.contains(part.path) or part.contains(mine.path) for mine in self.parts)

    def check(self, partition: str) -> None:
        """Raise InvalidRequest for the partition path of rows that the guard does not allow."""
        if not self.contains(partition):
            raise InvalidRequest(
                f"a row belongs to partition {partition!r}, and {self} allows no other than it names; drop such rows, "
                "or name their partition, too. Nothing was changed"
            )

    def __str__(self) -> str:
        shown = [*map(str, self.parts[:SHOWN]), *(["..."] if len(self.parts) > SHOWN else [])]
        return f"only_partitions=[{', '.join(shown)}]"
