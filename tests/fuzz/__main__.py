"""Fuzz every target, or those that are named, and print what came of it.

python -m tests.fuzz [--inputs N] [--findings FOLDER] [TARGET ...]
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from tests.fuzz.bounds import INPUT_BYTES_MAX
from tests.fuzz.targets import NAMES

INPUT_S_MAX = 10
"""An input that takes longer hangs."""

RSS_MB_MAX = 512
"""Of all that a target holds, libFuzzer's own corpus included."""


@dataclass(frozen=True, slots=True)
class Outcome:
    name: str
    input_count: int
    seconds: float
    peak_mb: float
    finding: str
    """What libFuzzer said, from the failure on; empty if there was none."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description="Fuzz all that reads bytes.")
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=f"of {', '.join(NAMES)}; all, if none is named")
    parser.add_argument("--inputs", type=int, default=1_000_000, help="of all targets together (%(default)s)")
    parser.add_argument("--findings", type=Path, default=Path("fuzz-findings"), help="a folder (%(default)s)")
    arguments = parser.parse_args()
    names: Sequence[str] = arguments.targets or NAMES
    if unknown := set(names) - set(NAMES):
        parser.error(f"no target {', '.join(sorted(unknown))}; there are {', '.join(NAMES)}")
    if find_spec("atheris") is None:
        parser.error("atheris is missing: pip install atheris, or nox -s fuzz")
    print(f"{'target':<20}{'inputs':>12}{'seconds':>10}{'peak MiB':>10}  findings", flush=True)
    outcomes = []
    for index, name in enumerate(names):
        share = arguments.inputs // len(names) + (index < arguments.inputs % len(names))
        outcomes.append(outcome := fuzz(name, share, arguments.findings))
        print(line(outcome), flush=True)
    found = [outcome for outcome in outcomes if outcome.finding]
    seconds, peak = sum(each.seconds for each in outcomes), max(each.peak_mb for each in outcomes)
    total = Outcome("all", sum(each.input_count for each in outcomes), seconds, peak, "")
    print(line(total, str(len(found))))
    for outcome in found:
        print(f"\n{outcome.name}: {outcome.finding}")
    return 1 if found else 0


def fuzz(name: str, input_count: int, findings: Path) -> Outcome:
    """Give the target so many inputs; the first finding ends it, and its input is a file in the folder."""
    findings.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as corpus, tempfile.TemporaryFile("w+") as said:
        options = (
            f"-atheris_runs={input_count}",
            f"-max_len={INPUT_BYTES_MAX}",
            f"-timeout={INPUT_S_MAX}",
            f"-rss_limit_mb={RSS_MB_MAX}",
            f"-artifact_prefix={findings}/{name}-",
        )
        begun = time.monotonic()
        program = subprocess.Popen(
            [sys.executable, "-m", "tests.fuzz.one_target", name, corpus, *options], stdout=said, stderr=said
        )
        _, status, usage = os.wait4(program.pid, 0)
        program.returncode = os.waitstatus_to_exitcode(status)
        said.seek(0)
        return outcome_of(name, program.returncode, said.read(), time.monotonic() - begun, usage.ru_maxrss / 1024)


def outcome_of(name: str, code: int, said: str, seconds: float, peak_mb: float) -> Outcome:
    """What libFuzzer has said, in figures."""
    done = re.search(r"^Done (\d+) in", said, re.MULTILINE)
    counts = [int(count) for count in re.findall(r"^#(\d+)\s", said, re.MULTILINE)]
    count = int(done[1]) if done else max(counts, default=0)
    finding = "" if done and code == 0 else f"exit code {code}\n{said[said.rfind(' === ') + 1 :][-4000:]}"
    return Outcome(name, count, seconds, peak_mb, finding)


def line(outcome: Outcome, findings: str | None = None) -> str:
    figures = f"{outcome.input_count:>12,}{outcome.seconds:>10.1f}{outcome.peak_mb:>10.0f}"
    return f"{outcome.name:<20}{figures}  {findings or ('1, see below' if outcome.finding else '0')}"


if __name__ == "__main__":
    sys.exit(main())
