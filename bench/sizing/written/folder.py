"""The data files of a table on local disk, as they come and go."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import unquote, urlsplit


@dataclass(frozen=True, slots=True)
class Landed:
    """A file that was new after an append."""

    append: int
    """From 1."""
    partition: str
    bytes: int


@dataclass(slots=True)
class Folder:
    """Looked at after each append; what came and went between two looks is not seen."""

    path: Path
    landed: list[Landed] = field(default_factory=list)
    _known: set[Path] = field(default_factory=set)
    _looks: int = 0

    def look(self) -> None:
        self._looks += 1
        for path in self.path.rglob("*.parquet"):
            inside = path.relative_to(self.path)
            if path in self._known or inside.name.startswith(".") or inside.parts[0].startswith((".", "_")):
                continue
            self._known.add(path)
            self.landed.append(Landed(self._looks, str(inside.parent), path.stat().st_size))

    @property
    def landed_bytes(self) -> int:
        """Of all that was ever new."""
        return sum(file.bytes for file in self.landed)


def sizes_of(urls: Iterable[str]) -> list[tuple[str, int]]:
    """Folder and bytes of the files that a reader says it reads."""
    paths = [Path(unquote(urlsplit(url).path)) for url in urls]
    return [(str(path.parent), path.stat().st_size) for path in paths]
