"""Scope of an overwrite: everything, partitions, or all below a prefix of partition paths. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Scope:
    """A union of parts. An empty one is that of a dynamic overwrite without rows, which replaces nothing."""

    is_all: bool = False
    partitions: frozenset[str] = frozenset()
    prefixes: frozenset[str] = frozenset()
    """``year=2013`` is that partition and everything below it; it does not include ``year=20130``."""

    def holds(self, partition: str) -> bool:
        return (
            self.is_all or partition in self.partitions or any(is_below(partition, prefix) for prefix in self.prefixes)
        )

    def common(self, other: "Scope") -> "Scope":
        """Return the scope that both replace."""
        if self.is_all:
            return other
        if other.is_all:
            return self
        return Scope(
            partitions=frozenset([*filter(other.holds, self.partitions), *filter(self.holds, other.partitions)]),
            prefixes=frozenset([*filter(other._is_above, self.prefixes), *filter(self._is_above, other.prefixes)]),
        )

    def __bool__(self) -> bool:
        return bool(self.is_all or self.partitions or self.prefixes)

    def _is_above(self, prefix: str) -> bool:
        return any(is_below(prefix, outer) for outer in self.prefixes)

    def fields(self) -> dict[str, object]:
        return {"all": self.is_all, "partitions": sorted(self.partitions), "prefixes": sorted(self.prefixes)}

    @classmethod
    def of_fields(cls, fields: Mapping[str, Any]) -> "Scope":
        """Return the scope of ``fields``, of this release or an earlier one. Raises KeyError, TypeError."""
        return cls(bool(fields["all"]), _texts(fields["partitions"]), _texts(fields.get("prefixes", ())))


def is_below(partition: str, prefix: str) -> bool:
    """Return whether the path is the prefix or below it; every path is below the empty prefix."""
    return not prefix or partition == prefix or partition.startswith(f"{prefix}/")


def _texts(found: Any) -> frozenset[str]:
    if not all(isinstance(text, str) for text in found):
        raise TypeError(f"{found!r} are not paths")
    return frozenset(found)
