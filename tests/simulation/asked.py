"""What each writer of a run had asked for, judged beside what its entry of the log says."""

from collections.abc import Iterator
from typing import Any

from tests.history import Befell
from tests.simulation.plan import YEARS, WriterPlan
from tests.simulation.world import Outcome
from tests.table_invariants import decisions


def commits_replace_what_was_asked(outcome: Outcome) -> None:
    """The scope of each commit is what its writer had named, and its files lie nowhere else."""
    for number, entry in _commits(outcome):
        writer = outcome.plan.writers[number]
        part = _part(writer, by_year=outcome.plan.by_year)
        wanted = _scope(writer, part, {file[0] for file in entry["added"]})
        assert entry["scope"] == wanted, f"writer{number} had asked for {wanted}, and has replaced {entry['scope']}"
        astray = [file for file in entry["added"] if part and not f"{file[0]}/".startswith(f"{part}/")]
        assert not astray, f"writer{number} had named {part}, and has committed {astray}"


def _commits(outcome: Outcome) -> Iterator[tuple[int, dict[str, Any]]]:
    """Number of the writer, and entry."""
    decided = decisions(outcome.swept)
    for event in outcome.history.of(Befell):
        if event.what.startswith("has instant ") and event.process.startswith("writer"):
            entry = decided.get(event.what.rpartition(" ")[2])
            if entry is not None and entry["kind"] == "commit":
                yield int(event.process.removeprefix("writer")), entry


def _part(writer: WriterPlan, *, by_year: bool) -> str:
    """The path of what it names; empty where it names nothing."""
    if writer.month is not None:
        month = f"month={writer.month}"
        return f"year={YEARS[writer.month]}/{month}" if by_year else month
    return f"year={writer.year}" if by_year and writer.year is not None else ""


def _scope(writer: WriterPlan, part: str, touched: set[str]) -> dict[str, Any] | None:
    """As an entry has it."""
    if writer.mode == "append":
        return None
    if writer.month is not None:
        return {"all": False, "partitions": [part], "prefixes": []}
    if writer.dynamic:
        return {"all": False, "partitions": sorted(touched), "prefixes": []}
    return {"all": not part, "partitions": [], "prefixes": [part] if part else []}
