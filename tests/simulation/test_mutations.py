"""That the checks can fail: faults found within a few seeds are found, and a fault that fits nothing is an error."""

import logging

import pytest

from tests.simulation.mutations import MUTATIONS
from tests.simulation.mutations.hunt import hunt, named
from tests.simulation.mutations.mutation import member, replaced

SEEDS = range(200)

SOON_FOUND = (
    "an instant is reserved by a plain put, whether an open writer has it or not",
    "a data file is started before its marker is acked",
    "files of lost attempts stay",
    "a fence is an empty object",
    "an entry is put before its body",
    "a clean drops all entries of the log but the newest",
    "a clean ignores readers' leases",
    "a fill keeps the old file",
    "positions of rows are one too high, and their keys are not compared",
    "the range of a file is that of its first rows",
    "a lost fill drops its rows",
    "an answer is of the view's head",
    "a process that starts at a checkpoint treats it as the end of the log",
    "a commit whose put was unclear joins another group though it is in the log",
    "all commits that wait get the verdict of the first one",
    "a stream acknowledges appends before their entry is won",
    "the last number of a producer is not compared at the commit",
)


@pytest.fixture(autouse=True)
def logging_as_before():
    yield
    logging.disable(logging.NOTSET)


@pytest.mark.parametrize("name", SOON_FOUND)
def test_a_broken_library_is_found_out(name):
    catch = hunt(name, SEEDS)
    assert catch.seed is not None
    assert catch.check


def test_names_of_mutations_are_unique():
    names = [mutation.name for mutation in MUTATIONS]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda one: one.name)
def test_a_mutation_still_fits_the_library(mutation):
    with mutation.fault():
        pass


def test_a_mutation_whose_target_is_gone_fails_loudly():
    def gone():
        """No module contains this one."""

    with pytest.raises(AttributeError, match="no module holds"):
        replaced(gone, gone)
    with pytest.raises(AttributeError, match="has no gone"):
        member(dict, "gone", gone)


def test_a_mutation_that_nobody_knows_is_refused():
    with pytest.raises(LookupError, match="no mutation 'that nobody knows'"):
        named("that nobody knows")
