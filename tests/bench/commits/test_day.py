from tallymark.bench.commits.day import LOOK_COMMITS, POINTS, DayRow, Look, curve
from tests.bench.commits.test_commits import measured


def test_objects_beside_data_files_are_counted_for_both_logs(tmp_path):
    commits = 2 * LOOK_COMMITS
    rows, points = measured(tmp_path, "--part", "day", "--place", "local", "--day-commits", commits)
    assert [(row["title"], row["commits"]) for row in rows] == [("Tallymark", commits), ("deltalake", commits)]
    assert [row["commits"] for row in points] == [LOOK_COMMITS, commits] * 2
    assert all(row["objects"] == row["most"] for row in points)
    assert all(min(row["first_half_cpu_s"], row["second_half_cpu_s"]) > 0 for row in rows)
    ours, delta = rows
    assert delta["objects"] > commits  # an object per commit, and checkpoints
    assert all(row["bytes"] > 100 * commits for row in (ours, delta))


def test_a_day_is_not_measured_again_on_the_stand_in(tmp_path):
    assert measured(tmp_path, "--part", "day", "--place", "s3") == []


def looks(count):
    """As of a log that is archived at every third look."""
    return [Look(10 * number, 100 + number % 3, 1000 * number, 0.5 * number) for number in range(1, count + 1)]


def test_the_most_objects_are_given_for_each_half():
    row = DayRow.of("Tallymark", [*looks(3), Look(40, 90, 4000, 3.0)])
    assert (row.commits, row.objects, row.first_half_most, row.second_half_most) == (40, 90, 102, 100)
    assert (row.bytes, row.per_file) == (4000, 100.0)
    assert (row.first_half_cpu_s, row.second_half_cpu_s) == (0.05, 0.1)


def test_a_curve_has_few_points_which_keep_the_most_objects_between_them():
    points = list(curve("Tallymark", looks(100)))
    assert (len(points), points[-1].commits) == (POINTS, 1000)
    assert {point.most for point in points} == {102}
    assert [point.commits for point in curve("Tallymark", looks(2))] == [10, 20]
