"""What a trial is, and what it has to work with."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tallymark.bench.defects.answer import Finding
from tallymark.bench.defects.hudi_side import HudiSide
from tallymark.bench.defects.our_side import OurSide
from tallymark.bench.defects.side import Side


@dataclass(frozen=True, slots=True, kw_only=True)
class Ground:
    """A folder on a local disk that goes at the end, and how much is tried."""

    folder: Path
    kills: int = 50
    """Of each server, in the trial that kills them under load."""
    clients: int = 32
    markers: int = 200
    """That are made before something happens."""
    pythons: Mapping[str, str] = field(default_factory=dict)
    """Of sides that need another Spark."""
    has_hudi: bool = True
    """Without it only our side is tried."""

    @property
    def sides(self) -> list[Side]:
        ours: list[Side] = [self.ours()]
        return [self.hudi(), *ours] if self.has_hudi else ours

    def hudi(self, *arguments: str, told: str = "", wait_s: float = 30.0) -> HudiSide:
        return HudiSide(self.folder, wait_s, arguments, told=told)

    def ours(self, wait_s: float = 30.0) -> OurSide:
        return OurSide(self.folder, wait_s)

    def table(self, name: str) -> Path:
        """A folder for a table that nobody has used."""
        taken = sum(path.name.startswith(name) for path in self.folder.iterdir())
        found = self.folder / f"{name}-{taken}"
        found.mkdir()
        return found


Try = Callable[[Ground], Iterator[Finding]]


@dataclass(frozen=True, slots=True)
class Trial:
    name: str
    suspected: str
    """In a sentence, of Hudi's server."""
    findings: Try
