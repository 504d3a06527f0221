"""The answer: what was found of each side, trial by trial."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any, Literal

from tallymark.bench.answer import heading
from tallymark.bench.machine import Machine

Shown = Literal["yes", "no", "not tried"]
"""Whether what is suspected was seen. ``no`` says that it was not seen in so many tries, and nothing more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    trial: str
    side: str
    """With the settings, where they are not the defaults."""
    tried: str
    """What, and how often."""
    shown: Shown
    seen: str
    """Or why it was not tried."""
    counts: Mapping[str, int | float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class DefectsAnswer:
    began: datetime
    machine: Machine
    suspected: Mapping[str, str]
    """Of each trial, what reading the source of Hudi's server suggests."""
    findings: tuple[Finding, ...]

    def document(self) -> dict[str, Any]:
        head = heading("defects", self.began, self.machine, {"suspected": dict(self.suspected)})
        return {**head, "findings": [asdict(finding) for finding in self.findings]}
