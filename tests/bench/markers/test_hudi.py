import re
from dataclasses import replace

import pytest

from tallymark.bench.load import Load, Seen
from tallymark.bench.markers import hudi, question
from tallymark.bench.markers.taking import Taken
from tallymark.bench.markers.targets import MARKER_BYTES
from tallymark.bench.paired import Estimate
from tests.bench.markers.test_markers import TINY, tables
from tests.support.jars import java

SMALL = replace(TINY, hudi_markers=200, hudi_rounds=2)


def requests_of(tmp_path, effort):
    return [table for table in tables(tmp_path, "hudi", effort) if table.title.startswith("markers by Hudi's protocol")]


def test_without_a_java_tallymark_serve_is_measured_alone_and_its_bytes_are_those_of_its_process(tmp_path, monkeypatch):
    monkeypatch.setenv("JAVA_HOME", "/no/such/java")
    paced, flat_out, whole = tables(tmp_path, "hudi", SMALL)
    assert "/no/such/java" in next(iter(paced.absent.values()))
    assert [row.side for row in (*paced.rows, *flat_out.rows)] == ["serve", "serve"]
    for row in (*paced.rows, *flat_out.rows):
        assert row.listed == row.markers > 0
        assert 1 <= row.amplification <= 4
        assert row.file_bytes == pytest.approx(row.sent_bytes, rel=0.02)
        assert 0 < row.objects <= row.puts
    assert flat_out.rows[0].markers == 200
    assert (whole.rows, len(whole.absent)) == ([], 1)
    assert [*tmp_path.iterdir()] == []


def test_on_a_store_that_is_not_a_folder_of_this_machine_the_part_is_left_out():
    asked = question.Asked(parts=["hudi"], effort=SMALL, latency_s=0.0)
    with asked.far() as store:
        found = [*question.measure_hudi(store, SMALL, None, lambda text: None)]  # type: ignore[arg-type]
    assert [table.rows for table in found] == [[], []]
    assert all("folders of this machine" in reason for table in found for reason in table.absent.values())


def block(mean_s, file_bytes, puts, answered=100):
    seen = Seen(latency_s=(mean_s,) * answered, counted_s=1.0, answered=answered)
    counts = {"cpu_s": mean_s, "puts": None, "sent_bytes": file_bytes}
    return hudi.Block(Taken(seen, counts), puts, file_bytes, answered, 2, 0.1)


@pytest.mark.parametrize(("their_bytes", "is_kept"), [(990, False), (1000, True)])
def test_the_bar_is_ten_times_fewer_bytes_per_marker(their_bytes, is_kept):
    requests = hudi.Requests(Load(connections=4, rate=200.0))
    for _ in range(3):
        requests.add("serve", block(0.01, 100, 10))
        requests.add("hudi", block(0.05, 2 * their_bytes, 10, answered=200))
    rows = {row.what: row for row in requests.ratios("serve", "hudi", hudi.BYTES_BAR)}
    found = rows["bytes, times fewer"]
    assert found.is_kept is is_kept
    assert found.times == Estimate(*[their_bytes / 100] * 3)
    assert rows["puts, times fewer"].times.value == pytest.approx(0.5)
    assert rows["mean ack, times lower"].times.value == pytest.approx(5)
    assert rows["mean ack, times lower"].is_kept is None


@pytest.mark.spark
@pytest.mark.release  # a minute, for a ratio
def test_every_marker_is_listed_and_hudis_server_writes_more_bytes_the_longer_a_job_takes(tmp_path):
    java()
    effort = replace(SMALL, hudi_markers=1_600, hudi_rounds=1)
    paced, flat_out = requests_of(tmp_path, effort)
    if paced.absent:
        pytest.skip(str(paced.absent))
    assert [row.side for row in paced.rows] == ["serve", "hudi"]
    for row in (*paced.rows, *flat_out.rows):
        assert row.listed == row.markers > 0
        assert row.file_bytes >= 0.99 * row.markers * MARKER_BYTES
    ours, theirs = paced.rows
    assert re.match(r"Hudi \d+\.\d+\.\d+, 50 ms, 20 threads", theirs.title)
    assert theirs.amplification / ours.amplification > 1
    assert theirs.amplification > flat_out.rows[1].amplification
    assert theirs.file_bytes < theirs.sent_bytes, "its process also writes checksums and a log"
