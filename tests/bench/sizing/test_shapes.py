from statistics import median

import pytest

from tallymark.bench.sizing import shapes
from tallymark.bench.sizing.replay import replay
from tests.bench.sizing.planners import one_new_file


def test_the_iceberg_shape_comes_to_the_figures_that_its_issue_gives():
    found = replay(shapes.iceberg(), None, one_new_file)
    sizes = [file.bytes for file in found.files.values() if file.bytes < 100_000_000]
    assert shapes.iceberg().inserted_bytes == pytest.approx(415e9, rel=0.001)
    assert sum(arrival.rows for arrival in shapes.iceberg().commits[0]) == pytest.approx(1.29e9, rel=0.001)
    assert median(sizes) == pytest.approx(457_000, rel=0.1)


def test_loads_of_the_iceberg_shape_are_as_much_together():
    assert shapes.iceberg(loads=5).inserted_bytes == pytest.approx(shapes.iceberg().inserted_bytes, rel=1e-6)


@pytest.mark.parametrize(("how", "times", "plain"), [("longer", 5, 5), ("worse", 5, 1), ("better", 1 / 5, 1)])
def test_records_of_a_drift_change_five_times_and_only_longer_ones_before_they_are_encoded(how, times, plain):
    first, *_, last = shapes.drift(how).commits
    assert last[0].bytes / first[0].bytes == pytest.approx(times)
    assert last[0].plain_bytes / first[0].plain_bytes == pytest.approx(plain)


def test_the_example_has_the_files_and_records_of_the_article():
    shape = shapes.example()
    assert [file.bytes // 10**6 for file in shape.before] == [40, 80, 90, 130, 105]
    assert (shape.commits[0][0].rows, shape.commits[0][0].bytes) == (450_000, 450_000_000)
