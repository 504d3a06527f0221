"""Break the library on purpose, one fault after the other, and count the seeds until the simulation finds it.

python -m tests.simulation.mutations                        # all of them
python -m tests.simulation.mutations --only "no heartbeat"  # those whose names contain this
python -m tests.simulation.mutations --markdown             # the table of docs/mutations.md
"""

import argparse
import os
import sys
from collections.abc import Iterator
from functools import partial
from multiprocessing import get_context

from tests.simulation.mutations import GROUPS, MUTATIONS
from tests.simulation.mutations.hunt import Catch, hunt


def main() -> int:
    options = _options()
    names = [mutation.name for mutation in MUTATIONS if any(part in mutation.name for part in options.only)]
    seeds = range(options.first, options.first + options.seeds)
    catches = {}
    for catch in _catches(names, seeds, options.processes):
        catches[catch.mutation] = catch
        print(_line(catch), file=sys.stderr if options.markdown else sys.stdout, flush=True)
    if options.markdown:
        print(markdown(catches))
    missed = [catch for catch in catches.values() if catch.seed is None]
    print(f"{len(catches) - len(missed)} of {len(names)} mutations found", file=sys.stderr)
    return 1 if missed or not names else 0


def _catches(names: list[str], seeds: range, processes: int) -> Iterator[Catch]:
    """As they come in."""
    with get_context("forkserver").Pool(processes) as pool:
        yield from pool.imap_unordered(partial(hunt, seeds=seeds), names)


def _line(catch: Catch) -> str:
    if catch.seed is None:
        return f"NOT FOUND in {catch.seeds} seeds ({catch.seconds:.0f} s): {catch.mutation} {catch.error}"
    return f"{catch.seeds:6d} seeds {catch.seconds:6.1f} s  {catch.mutation}\n{'':24}{catch.check}: {catch.error[:160]}"


def markdown(catches: dict[str, Catch]) -> str:
    """A table a group: each mutation, how it goes wrong, what found it, and after how many seeds."""
    lines = []
    for group in GROUPS:
        if not any(mutation.name in catches for mutation in group.mutations):
            continue
        lines += [
            f"### {group.title}",
            "",
            "| instead of what should be | so | found by | seeds |",
            "|---|---|---|---:|",
        ]
        for mutation in group.mutations:
            catch = catches.get(mutation.name)
            if catch is not None:
                found = "not found" if catch.seed is None else f"`{catch.check}`"
                lines.append(f"| {mutation.name} | {mutation.breaks} | {found} | {catch.seeds} |")
        lines.append("")
    return "\n".join(lines)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.simulation.mutations", description=__doc__.partition("\n")[0]
    )
    parser.add_argument("--seeds", type=int, default=20_000, metavar="N", help="in vain at most (default: %(default)s)")
    parser.add_argument("--first", type=int, default=0, metavar="F", help="the first of them (default: %(default)s)")
    parser.add_argument("--only", nargs="+", default=[""], metavar="NAME", help="those whose names hold one of these")
    parser.add_argument("--markdown", action="store_true", help="print the table of docs/mutations.md")
    parser.add_argument(
        "--processes", type=int, default=os.cpu_count() or 1, metavar="P", help="default: one a core (%(default)s)"
    )
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
