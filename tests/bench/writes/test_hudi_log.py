from tallymark.bench.peers.writers.hudi_log import marker_figures

LINES = """\
1000 Writing marker file
1001 [timeline-server-based] Created marker file year=2013/a_0-1-1_20260101000000000.parquet.marker.CREATE in 498 ms
1002 [direct] Created marker file /t/.hoodie/.temp/20260101/b_1-1-2_20260101.parquet.marker.CREATE in 2 ms
1500 Committing 20260101000000000 action commit
1600 Committed 20260101000000000
2850 Removed directory at /t/.hoodie/.temp/20260101000000000
""".splitlines()


def test_waits_are_summed_and_the_deletion_lies_between_commit_and_removal():
    assert marker_figures(LINES) == {"markers": 2, "marker_wait_s": 0.5, "marker_deletion_s": 1.25}


def test_a_write_whose_folder_of_markers_stays_has_no_time_of_deletion():
    assert marker_figures(LINES[:4]) == {"markers": 2, "marker_wait_s": 0.5}
