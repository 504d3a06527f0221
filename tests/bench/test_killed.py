import pyarrow as pa
import pyarrow.parquet as pq

from tallymark.bench.killed.question import remains


def put(folder, name, rows):
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table({"id": range(rows)}), path)
    return path


def test_what_readers_see_and_what_remains_beside_it(tmp_path):
    read = put(tmp_path, "p=1/a.parquet", 10)
    put(tmp_path, "p=1/unread.parquet", 3)
    put(tmp_path, "_temporary/b.parquet", 2)
    (tmp_path / "_temporary/lease").write_text("")
    found = remains("ours", tmp_path, 10, [read.as_uri()], 10)
    assert (found.reader, found.scan, found.files, found.temporary) == ("right", "+3 rows", 2, 1)


def test_a_file_without_an_end_fails_a_directory_scan(tmp_path):
    (tmp_path / "torn.parquet").write_bytes(b"PAR1")
    assert remains("other", tmp_path, 12, [], 10).scan == "an error"
    assert remains("other", tmp_path, 12, [], 10).reader == "+2 rows"
