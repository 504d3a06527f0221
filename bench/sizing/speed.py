"""How long a plan takes, of a table with very many files."""

import time
from collections.abc import Callable
from dataclasses import dataclass

from tallymark.bench.sizing.replay import Planner
from tallymark.engine.settings import SizingSettings
from tallymark.engine.sizing.profile import IncomingRows, WorkloadProfile
from tallymark.engine.timeline.entry import DataFile

FILES, PARTITIONS = 1_000_000, 10_000

BAR_S = 2.0
"""For that many."""

ROW_BYTES = 100
FILE_STEPS = 97
"""Sizes that files have, from a hundredth of the small limit to beyond it, so that some can be filled and some not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Speed:
    policy: str
    files: int
    partitions: int
    planned: int
    """Files of the plan: every partition has rows to come."""
    samples_s: tuple[float, ...]

    @property
    def best_s(self) -> float:
        """What others on the machine have disturbed least."""
        return min(self.samples_s)


def measure(
    settings: SizingSettings,
    planner: Planner,
    *,
    scale: float = 1.0,
    rounds: int = 3,
    now: Callable[[], float] = time.process_time,
) -> Speed:
    """CPU seconds of this process, which does nothing else meanwhile."""
    files, partitions = max(1, round(FILES * scale)), max(1, round(PARTITIONS * scale))
    table, profile = _table(settings, files, partitions), _profile(partitions)
    taken, planned = [], 0
    for _ in range(rounds):
        began = now()
        planned = len(planner(profile, table, settings).files)
        taken.append(now() - began)
    return Speed(policy=settings.policy, files=files, partitions=partitions, planned=planned, samples_s=tuple(taken))


def _table(settings: SizingSettings, files: int, partitions: int) -> tuple[DataFile, ...]:
    step = 2 * settings.small_file_bytes // FILE_STEPS
    sizes = (step * (1 + number % FILE_STEPS) for number in range(files))
    return tuple(
        DataFile(f"p={number % partitions:05d}", f"{number:08d}_0_0.parquet", size // ROW_BYTES, size, 3 * size, size)
        for number, size in enumerate(sizes)
    )


def _profile(partitions: int) -> WorkloadProfile:
    rows = 1_000_000
    return WorkloadProfile(
        incoming=tuple(IncomingRows(f"p={number:05d}", rows, 3 * rows * ROW_BYTES) for number in range(partitions))
    )
