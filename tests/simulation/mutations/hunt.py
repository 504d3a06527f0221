"""Play seeds under a mutation until one of them is judged broken."""

import logging
import time
import traceback
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from tests.simulation.judge import judge
from tests.simulation.kernel import Stuck
from tests.simulation.mutations import GROUPS
from tests.simulation.mutations.mutation import Mutation
from tests.simulation.plan import draw
from tests.simulation.world import run

CHECKS = ("tests/promises.py", "tests/table_invariants.py", "tests/invariants.py", "tests/simulation/judge.py")
"""Whose functions say no."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Catch:
    """What came of one mutation."""

    mutation: str
    seeds: int
    """Played until it was found, or in vain."""
    seed: int | None
    """The one that found it."""
    check: str = ""
    """The function that said no."""
    error: str = ""
    """What it said, its first line."""
    seconds: float = 0.0


def hunt(name: str, seeds: Iterable[int]) -> Catch:
    """Play the seeds one after the other. A seed that breaks a promise without the mutation, too, is no catch."""
    logging.disable()
    mutation, began, played = named(name), time.monotonic(), 0
    play = _PLAYS[mutation.world]
    for seed in seeds:
        played += 1
        with mutation.fault():
            found = _broken(play, seed)
        if found is not None and _broken(play, seed) is None:
            check, error = found
            seconds = time.monotonic() - began
            return Catch(mutation=name, seeds=played, seed=seed, check=check, error=error, seconds=seconds)
    return Catch(mutation=name, seeds=played, seed=None, seconds=time.monotonic() - began)


def named(name: str) -> Mutation:
    """Raises LookupError for a name that nothing has."""
    for _, mutations in GROUPS:
        for mutation in mutations:
            if mutation.name == name:
                return mutation
    raise LookupError(f"there is no mutation {name!r}")


def _play_tables(seed: int) -> None:
    judge(run(draw(seed)))


_PLAYS: dict[str, Callable[[int], None]] = {"tables": _play_tables}


def _broken(play: Callable[[int], None], seed: int) -> tuple[str, str] | None:
    """Which check says no to the run of this seed, and what it says; None if all is well."""
    try:
        play(seed)
    except Exception as error:
        cause = _innermost(error)
        said = next(iter(str(cause).splitlines()), "")
        return _judge_of(cause), said
    return None


def _innermost(error: BaseException) -> BaseException:
    """What a check said first, before it was wrapped for those who read it."""
    while True:
        if isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        elif isinstance(error, AssertionError) and isinstance(error.__cause__, AssertionError):
            error = error.__cause__
        else:
            return error


def _judge_of(error: BaseException) -> str:
    """The outermost named check in the traceback; where the library itself broke down, the class of the error."""
    if isinstance(error, Stuck):
        return "stuck"
    frames = traceback.extract_tb(error.__traceback__)
    names = [frame.name for frame in frames if frame.filename.endswith(CHECKS)]
    named = [name for name in names if name not in ("judge", "_with_history", "<lambda>")]
    return named[0] if named else type(error).__name__
