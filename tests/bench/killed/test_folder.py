import pyarrow as pa
import pyarrow.parquet as pq

from tallymark.bench.killed.folder import Remains, remains


def put(path, rows):
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table({"n": range(rows)}), path)
    return path


def test_a_table_at_rest_leaves_nothing(tmp_path):
    read = put(tmp_path / "month=1" / "a b.parquet", 3)
    (tmp_path / "_SUCCESS").touch()
    url = read.as_uri()
    assert "%20" in url
    assert remains(tmp_path, 3, [url]) == Remains(rows=3, directory_rows=3, files=0, bytes=0, temporary=0)


def test_files_that_no_reader_reads_are_left_wherever_they_lie(tmp_path):
    put(tmp_path / "a.parquet", 3)
    seen = put(tmp_path / "b.parquet", 4)
    hidden = put(tmp_path / "_temporary" / "0" / "task" / "c.parquet", 5)
    (hidden.parent / ".c.parquet.crc").touch()
    found = remains(tmp_path, 3, [f"file:{tmp_path}/a.parquet"])
    assert (found.files, found.bytes) == (2, seen.stat().st_size + hidden.stat().st_size)
    assert found.directory_rows == 3 + 4
    assert found.temporary == 1


def test_markers_are_no_data(tmp_path):
    folder = tmp_path / ".hoodie" / ".temp" / "7" / "month=1"
    folder.mkdir(parents=True)
    (folder / "a.parquet.marker.CREATE").touch()
    assert remains(tmp_path, 0, []) == Remains(rows=0, directory_rows=0, files=0, bytes=0, temporary=1)


def test_a_file_that_is_not_whole_makes_the_scan_of_a_directory_fail(tmp_path):
    put(tmp_path / "a.parquet", 3)
    (tmp_path / "b.parquet").write_bytes(b"PAR1")
    assert remains(tmp_path, 3, [(tmp_path / "a.parquet").as_uri()]).directory_rows is None
