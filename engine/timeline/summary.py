"""How a write came about: what its files do not tell of it. Part of the entry that committed it."""

import math
from dataclasses import asdict, dataclass
from typing import Any, Literal, get_args

MarkerMode = Literal["batched", "direct", "mixed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteSummary:
    """Counted when all but the commit was done."""

    marker_mode: MarkerMode
    """How markers were kept in effect: ``batched`` by the service; ``direct``, an object each, by the tasks; ``mixed``
    where some tasks could not reach the service, for a while at least."""
    markers: int
    direct_markers: int
    """Those of them that tasks have put themselves."""
    marker_objects: int
    """Objects that held the markers at the commit."""
    puts: int
    """Puts that the markers cost, the service's repeats included."""
    seconds: float
    """From the moment that tasks could begin to the moment when the log was asked to decide."""

    def fields(self) -> dict[str, object]:
        return asdict(self)

    @classmethod
    def of_fields(cls, fields: dict[str, Any]) -> "WriteSummary":
        """What ``fields`` gave; others, of a newer release, are left aside. Raises KeyError, TypeError, ValueError."""
        if fields["marker_mode"] not in get_args(MarkerMode):
            raise ValueError(f"{fields['marker_mode']!r} is no marker mode")
        counts = {name: _number(fields[name], int) for name in ("markers", "direct_markers", "marker_objects", "puts")}
        return cls(marker_mode=fields["marker_mode"], seconds=_number(fields["seconds"], float), **counts)


def _number(value: Any, kind: type[int] | type[float]) -> Any:
    if not isinstance(value, kind) or isinstance(value, bool) or not (math.isfinite(value) and value >= 0):
        raise TypeError(f"{value!r} is no {kind.__name__} of 0 or more")
    return value
