"""What is told of a run under atheris."""

from pathlib import Path

from tests.fuzz import targets
from tests.fuzz.__main__ import Outcome, line, outcome_of

FINDING = """#2	INITED cov: 5
#131072	pulse  cov: 43
 === Uncaught Python exception: ===
AssertionError: 7 bytes took 9000000
"""


def test_a_run_to_its_end_is_its_inputs_and_no_finding():
    outcome = outcome_of("entries", 0, "#2\tINITED cov: 5\nDone 909091 in 41 second(s)\n", 41.7, 45.2)
    assert line(outcome).split() == ["entries", "909,091", "41.7", "45", "0"]
    assert not outcome.finding


def test_the_line_of_all_targets_tells_the_highest_peak_and_how_many_had_a_finding():
    total = Outcome("all", 10_000_000, 1239.0, 97.0, "")
    assert line(total, "1").split() == ["all", "10,000,000", "1239.0", "97", "1"]


def test_a_run_that_was_ended_by_a_finding_tells_how_far_it_came_and_what_it_was():
    outcome = outcome_of("entries", 77, FINDING, 1.0, 45.0)
    assert outcome.input_count == 131_072
    assert "exit code 77" in outcome.finding
    assert "7 bytes took 9000000" in outcome.finding
    assert "see below" in line(outcome)


def test_a_run_that_ends_badly_after_its_last_input_is_a_finding():
    assert outcome_of("entries", -6, "Done 10 in 1 second(s)\n", 1.0, 45.0).finding


def test_every_module_among_the_targets_is_one():
    [folder] = map(Path, targets.__path__)
    assert {path.stem for path in folder.glob("*.py")} == {"__init__", *targets.NAMES}
