"""What the server was asked for: requests by kind, and how many markers were put. Read by ``GET /bench?seen``."""

from dataclasses import dataclass, field
from typing import Literal

Kind = Literal["put", "copy", "get", "head", "list", "delete"]
"""``put`` holds every step of an upload in parts; ``delete`` is one for many names, too."""

MARKERS = "/.hoodie/.temp/"
"""Where Hudi and Tallymark keep the markers of a job."""


@dataclass(slots=True)
class Seen:
    requests: dict[Kind, int] = field(default_factory=dict)
    markers: set[str] = field(default_factory=set)
    """Keys below a folder of markers that were put, once or several times."""

    def count(self, kind: Kind) -> None:
        self.requests[kind] = self.requests.get(kind, 0) + 1

    def put(self, key: str) -> None:
        if MARKERS in f"/{key}" and not key.endswith("/"):
            self.markers.add(key)

    def document(self) -> dict[str, int]:
        """Flat, for JSON; without what was not seen."""
        found = {f"requests_{kind}": count for kind, count in self.requests.items()}
        return {**found, "marker_objects": len(self.markers)} if self.markers else found
