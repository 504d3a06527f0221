"""A plan counts every row once, whatever is known of the rows and the files."""

from tallymark import SizingSettings
from tallymark.engine.sizing import IncomingRows, WorkloadProfile, plan
from tallymark.engine.timeline.entry import DataFile

MB = 1_000_000
SETTINGS = SizingSettings(max_file_bytes=120 * MB, small_file_bytes=100 * MB)


def test_with_packing_off_nothing_is_planned() -> None:
    profile = WorkloadProfile(incoming=(IncomingRows("p", 100),))
    assert plan(profile, [DataFile("p", "f", 10, 10)], SizingSettings(small_file_bytes=0)).files == ()


def test_one_write_makes_files_of_the_maximum_at_most() -> None:
    history = [DataFile("q", "f", 120_000, 120 * MB)]
    made = plan(WorkloadProfile(incoming=(IncomingRows("p", 1_000_000),)), history, SETTINGS).files
    assert len(made) == 9
    assert sum(file.rows for file in made) == 1_000_000
    assert all(100 * MB <= file.bytes <= 120 * MB for file in made)
