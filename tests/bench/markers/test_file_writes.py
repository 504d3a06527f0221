import os
from threading import Event

from tallymark.bench.markers.file_writes import file_writes


def test_each_writing_of_a_file_counts_with_all_its_bytes(tmp_path):
    with file_writes(tmp_path) as writes:
        for number, text in enumerate(("a", "ab", "abc"), 1):
            (tmp_path / "MARKERS0").write_text(text)
            while writes.finished < number:
                Event().wait(0.001)
    assert (writes.count, writes.bytes) == (3, 6)


def test_no_writing_is_missed_where_they_follow_each_other_at_once(tmp_path):
    with file_writes(tmp_path) as writes:
        for _ in range(1000):
            (tmp_path / "MARKERS0").write_text("a")
    assert writes.count == 1000


def test_a_file_that_is_linked_or_renamed_into_place_counts_once(tmp_path):
    folder = tmp_path / "markers"
    folder.mkdir()
    for name in ("first", "second"):
        (tmp_path / name).write_text("12345")
    with file_writes(folder) as writes:
        os.link(tmp_path / "first", folder / "linked")
        (tmp_path / "second").rename(folder / "renamed")
    assert (writes.count, writes.bytes) == (2, 10)


def test_files_in_folders_that_are_made_in_between_count(tmp_path):
    with file_writes(tmp_path) as writes:
        for number in range(100):
            (tmp_path / f"{number}/deep").mkdir(parents=True)
            (tmp_path / f"{number}/deep/marker").write_text("1")
    assert (writes.count, writes.bytes) == (100, 100)


def test_checksums_unfinished_objects_and_what_was_there_do_not_count(tmp_path):
    (tmp_path / ".unfinished").mkdir()
    (tmp_path / "old").write_text("old")
    with file_writes(tmp_path) as writes:
        (tmp_path / ".MARKERS0.crc").write_text("1")
        (tmp_path / ".unfinished/1").write_text("1")
    (tmp_path / "late").write_text("1")
    assert (writes.count, writes.bytes) == (0, 0)
