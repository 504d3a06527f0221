"""Who writes: three ways of Tallymark in one session, and the peers in theirs."""

from dataclasses import dataclass

from tallymark.bench.peers.writers import writer
from tallymark.bench.writes.order import Policy


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenSide:
    name: str
    hands: str
    """The writer, and the worker that has it."""
    policy: Policy = "off"
    """Of our own; a peer has its own way."""

    @property
    def title(self) -> str:
        if self.hands != "ours":
            return writer(self.hands).title
        return "Tallymark, no sizing" if self.policy == "off" else f'Tallymark, policy "{self.policy}"'


SIDES = (
    WrittenSide(name="balanced", hands="ours", policy="balanced"),
    WrittenSide(name="hudi-policy", hands="ours", policy="hudi"),
    WrittenSide(name="off", hands="ours"),
    WrittenSide(name="plain", hands="v1"),
    WrittenSide(name="hudi", hands="hudi"),
)

NAMES = tuple(side.name for side in SIDES)
