"""Play seeds under a mutation until one of them is judged broken."""

import logging
import time
import traceback
from collections.abc import Iterable
from dataclasses import dataclass

from tallymark.backends.errors import TallymarkError
from tests.simulation.kernel import Stuck
from tests.simulation.kind import AnyPlan, draw, judge, run
from tests.simulation.markers.marker_plan import MarkerPlan
from tests.simulation.mutations import MUTATIONS
from tests.simulation.mutations.mutation import Mutation

CHECKS = (
    "tests/promises.py",
    "tests/table_invariants.py",
    "tests/invariants.py",
    "tests/simulation/judge.py",
    "tests/simulation/markers/marker_judge.py",
    "tests/simulation/reader_judge.py",
)
"""Whose functions say no."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Catch:
    """What came of one mutation."""

    mutation: str
    seeds: int
    """Played until it was found, or unsuccessfully."""
    seed: int | None
    """The one that found it."""
    check: str = ""
    """The function that said no."""
    error: str = ""
    """What it said, its first line."""
    seconds: float = 0.0


def hunt(name: str, seeds: Iterable[int]) -> Catch:
    """Play the seeds one after the other. A seed that breaks a promise without the mutation, too, does not count.

    Those whose plan cannot show the mutation count as played: they are skipped to save time.
    """
    logging.disable()
    mutation, began, played = named(name), time.monotonic(), 0
    for seed in seeds:
        played += 1
        plan = draw(seed)
        if not _can_show(mutation, plan):
            continue
        try:
            with mutation.fault():
                found = _broken(plan)
        except Exception as fault:  # what is no mutation any more must not end the others' hunts
            return Catch(mutation=name, seeds=played, seed=None, error=f"the simulation itself broke: {fault!r}")
        if found is None or (mutation.by and found[0] not in mutation.by):
            continue
        if _broken(plan) is None:
            check, error = found
            seconds = time.monotonic() - began
            return Catch(mutation=name, seeds=played, seed=seed, check=check, error=error, seconds=seconds)
    return Catch(mutation=name, seeds=played, seed=None, seconds=time.monotonic() - began)


def named(name: str) -> Mutation:
    """Raises LookupError for a name that nothing has."""
    for mutation in MUTATIONS:
        if mutation.name == name:
            return mutation
    raise LookupError(f"there is no mutation {name!r}")


def _can_show(mutation: Mutation, plan: AnyPlan) -> bool:
    is_of_world = isinstance(plan, MarkerPlan) == (mutation.world == "markers")
    return is_of_world and all(holds(plan) for holds in mutation.where)


def _broken(plan: AnyPlan) -> tuple[str, str] | None:
    """Which check says no to the run of this plan, and what it says; None if all is well."""
    try:
        judge(run(plan))
    except Exception as error:
        cause = _innermost(error)
        check = _judge_of(cause)
        if check is None:
            raise  # the mutation has broken the simulation, not the library
        return check, next(iter(str(cause).splitlines()), "")
    return None


def _innermost(error: BaseException) -> BaseException:
    """What a check said first, before it was wrapped for readers."""
    while True:
        if isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        elif isinstance(error, AssertionError) and isinstance(error.__cause__, AssertionError):
            error = error.__cause__
        else:
            return error


def _judge_of(error: BaseException) -> str | None:
    """The outermost named check in the traceback; "stuck"; what the library itself says about it; or None."""
    if isinstance(error, Stuck):
        return "stuck"
    frames = traceback.extract_tb(error.__traceback__)
    names = [frame.name for frame in frames if frame.filename.endswith(CHECKS)]
    named = [
        name for name in names if name not in ("judge", "judge_markers", "_judge_life", "_with_history", "<lambda>")
    ]
    if named:
        return named[0]
    return type(error).__name__ if isinstance(error, AssertionError | TallymarkError) else None
