import pytest

from tallymark.bench.sizing.figures import figures
from tallymark.bench.sizing.replay import replay
from tallymark.bench.sizing.shape import Arrival, Shape
from tallymark.engine.settings import SizingSettings
from tests.bench.sizing.planners import one_file_ever, one_new_file

SETTINGS = SizingSettings(max_file_bytes=1000, small_file_bytes=800)


def shape(*commits, tasks=1, variation=0.0):
    return Shape(
        name="any", label="any", commits=commits, max_file_bytes=1000, small_file_bytes=800, tasks=tasks,
        variation=variation,
    )  # fmt: skip


def rows(count, *, each=10, partition="p=1"):
    return (Arrival(partition, count, 3 * each * count, each * count),)


def sizes(found):
    return [file.bytes for file in found.files.values()]


def test_a_file_that_is_filled_goes_and_its_bytes_count_as_rewritten():
    found = replay(shape(rows(10), rows(20), rows(30)), SETTINGS, one_file_ever)
    assert sizes(found) == [600]
    assert found.rewritten_bytes == 100 + 300
    [file] = found.files.values()
    assert (file.rows, file.plain_bytes, file.rewritten_bytes) == (60, 1800, 400)


def test_files_without_a_plan_are_one_a_task_and_partition_and_roll_at_the_maximum():
    assert sizes(replay(shape(rows(10), tasks=2), None, one_new_file)) == [50, 50]
    assert sizes(replay(shape(rows(230)), None, one_new_file)) == [1000, 1000, 300]


def test_a_planned_file_grows_by_an_eighth_beyond_the_maximum_and_no_further():
    assert sizes(replay(shape(rows(112)), SETTINGS, one_new_file)) == [1120]
    assert sizes(replay(shape(rows(300)), SETTINGS, one_new_file)) == [1125, 1000, 875]


def test_no_row_is_lost_on_the_way():
    found = replay(shape(*[rows(333)] * 4, variation=0.1), SETTINGS, one_new_file)
    assert sum(file.rows for file in found.files.values()) == pytest.approx(4 * 333, abs=4)


def test_figures_hold_sizes_to_the_target_without_each_commits_last_file_and_without_the_first_two_commits():
    loads = [rows(300), rows(300), rows(300), rows(230)]
    found = figures(shape(*loads), replay(shape(*loads), None, one_new_file))
    assert (found.files, found.minimum, found.small_files) == (12, 12, 1)
    assert found.error_p95 == 0.0
    assert found.histogram == (0, 0, 0, 0, 1, 0, 0, 11, 0, 0)


def test_the_error_is_none_where_each_commit_leaves_one_file():
    found = figures(shape(*[rows(10)] * 4), replay(shape(*[rows(10)] * 4), SETTINGS, one_file_ever))
    assert found.error_p95 is None
    assert found.rewritten == pytest.approx((0 + 1 + 2 + 3) / 4)


def test_all_of_a_shape_at_once_is_one_commit_with_the_same_rows_and_bytes():
    whole = shape(rows(10), rows(20, partition="p=2"), rows(30, each=20)).at_once(2)
    assert whole.commits[0] == (Arrival("p=1", 40, 2100, 700), Arrival("p=2", 20, 600, 200))
    assert whole.commits[1] == whole.commits[0]
