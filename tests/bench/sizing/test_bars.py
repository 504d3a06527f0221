"""The default policy keeps to the bars in every shape of the bench, with the planner that jobs use."""

import pytest

from tallymark.bench.sizing import shapes
from tallymark.bench.sizing.figures import figures
from tallymark.bench.sizing.question import BALANCED
from tallymark.bench.sizing.replay import replay
from tallymark.engine.sizing.planning import plan

LOADS = 5
WHOLE = [shapes.example(), shapes.appends(), shapes.iceberg(), *map(shapes.drift, shapes.DRIFTS)]
STREAMS = [shapes.iceberg(loads=LOADS), *map(shapes.drift, shapes.DRIFTS)]


def played(shape):
    return figures(shape, replay(shape, BALANCED.settings(shape), plan))


@pytest.mark.parametrize("shape", WHOLE, ids=lambda shape: shape.name)
def test_one_write_of_the_whole_leaves_as_few_files_as_it_may(shape):
    found = played(shape.at_once(1))
    assert found.files <= found.files_max


@pytest.mark.parametrize("shape", [*(shape.at_once(LOADS) for shape in WHOLE), *STREAMS], ids=lambda shape: shape.name)
def test_from_the_third_commit_on_sizes_are_within_a_tenth_of_the_maximum(shape):
    found = played(shape)
    assert found.error_p95 is None or found.error_p95 <= 0.1
