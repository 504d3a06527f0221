"""Chaos for a given time: ``python -m tests.system.chaos --store local|s3|hdfs --minutes 30 --seed 1``."""

import argparse
import sys
import tempfile
import time
from pathlib import Path

from tests.system.chaos.rounds import Outcome, ground_on, play


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--store", choices=("local", "s3", "hdfs"), default="local")
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--seed", type=int, default=1, help="of the first round; the next ones count up")
    parser.add_argument("--round-seconds", type=float, default=90.0, help="of chaos between two verdicts")
    parser.add_argument("--folder", type=Path, help="for journals, and for tables with a broken promise")
    arguments = parser.parse_args()
    folder = arguments.folder or Path(tempfile.mkdtemp(prefix="chaos-"))
    total, ends_at, seed = Outcome(), time.monotonic() + arguments.minutes * 60, arguments.seed
    with ground_on(arguments.store, folder) as ground:
        while time.monotonic() < ends_at:
            outcome = play(ground, seed, arguments.round_seconds)
            total.add(outcome)
            print(f"seed {seed}: {_line(outcome)}", flush=True)
            for problem in outcome.broken:
                print(f"  {problem}", flush=True)
            seed += 1
    for name, count in sorted(total.counts.items()):
        print(f"{name:<40}{count:>9}")
    print(f"{'broken':<40}{len(total.broken):>9}\n{folder}")
    return 1 if total.broken else 0


def _line(outcome: Outcome) -> str:
    counts = outcome.counts
    kills = sum(count for name, count in counts.items() if name.startswith("kill"))
    stops = sum(count for name, count in counts.items() if name in ("stop driver", "stop all", "stop task"))
    return (
        f"{counts['log: commit']} commits, {counts['log: rollback']} rollbacks, {counts['told: unknown']} unknown, "
        f"{kills} kills, {stops} stops, {counts['faults']} faults, {counts['leased reads']} leased reads, "
        f"{len(outcome.broken)} broken"
    )


if __name__ == "__main__":
    sys.exit(main())
