"""Play seeds, judge each run, and print how the first broken ones happened.

python -m tests.simulation --seeds 2000              # what CI does
python -m tests.simulation --seed 1297               # one run again, with its whole history
"""

import argparse
import logging
import os
import sys

from tests.simulation.campaign import (
    Campaign,
    Finding,
    examine,
    print_finding,
    print_missing,
    print_summary,
    show_progress,
)
from tests.simulation.kind import draw, run

FAILURES_MAX = 3
"""Enough to see a pattern; each is shrunk, which takes a while."""


def main() -> int:
    options = _options()
    logging.disable()  # what the library has to say about mishaps would bury what is found
    if options.seed is not None:
        return _replay(options.seed)
    campaign = Campaign(range(options.first, options.first + options.seeds), processes=options.processes)
    findings = []
    with show_progress(options.seeds) as progressed:
        for finding in campaign.findings(progressed):
            findings.append(finding)
            print_finding(finding)
            if len(findings) == FAILURES_MAX:
                break
    print_summary(campaign.totals)
    return 1 if findings or print_missing(campaign.totals) else 0


def _replay(seed: int) -> int:
    plan = draw(seed)
    print(plan)
    error = examine(plan)
    if error is not None:
        print_finding(Finding(plan, error))
        return 1
    print(run(plan).history)
    print(f"seed {seed}: every promise was kept")
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__.partition("\n")[0])
    parser.add_argument("--seeds", type=int, default=2000, metavar="N", help="play N seeds (default: %(default)s)")
    parser.add_argument("--first", type=int, default=0, metavar="F", help="the first of them (default: %(default)s)")
    parser.add_argument("--seed", type=int, metavar="S", help="play this one alone, and print its history")
    parser.add_argument(
        "--processes", type=int, default=os.cpu_count() or 1, metavar="P", help="default: one a core (%(default)s)"
    )
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
