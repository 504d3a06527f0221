"""What the demo claims, and whether it was so."""

from dataclasses import dataclass, field

from demo.storage import Storage

SHOWN_PATHS = 3


@dataclass(frozen=True, slots=True)
class Check:
    step: int
    claim: str
    holds: bool
    seen: str


@dataclass(slots=True)
class Checks:
    """All checks so far. Nothing is taken back, and a check that was not reached cannot pass."""

    step: int = 0
    made: list[Check] = field(default_factory=list)

    def that(self, claim: str, holds: bool, seen: str) -> None:
        self.made.append(Check(self.step, claim, holds, seen))

    def equal(self, claim: str, seen: int, wanted: int) -> None:
        self.that(claim, seen == wanted, f"{seen:,}" if seen == wanted else f"{seen:,}, not {wanted:,}")

    def at_rest(self, storage: Storage) -> None:
        """The folder holds the committed files, the table's own bookkeeping, and nothing else."""
        remains = storage.remains()
        seen = f"{len(storage.data):,} data files, all committed"
        self.that("storage holds exactly the committed files", not remains, _listed(remains) if remains else seen)

    @property
    def failed(self) -> list[Check]:
        return [check for check in self.made if not check.holds]


def _listed(paths: list[str]) -> str:
    rest = len(paths) - SHOWN_PATHS
    return f"{len(paths):,} too many, or missing: {', '.join(paths[:SHOWN_PATHS])}" + (
        f" + {rest:,}" if rest > 0 else ""
    )
