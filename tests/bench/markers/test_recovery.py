import pytest
from click.testing import CliRunner

from tallymark.bench.markers.recovery import INSTANT, main, measure_recovery
from tallymark.engine.tasks.file_name import new_file_name

LINE = len(f"year=2000/month=1/{new_file_name(instant=INSTANT, task=0, stage=0, attempt=0)}.marker.CREATE\n")


@pytest.mark.parametrize(("count", "segments"), [(1, 1), (60, 2)])
def test_a_recovery_reads_what_the_service_has_left(count: int, segments: int) -> None:
    found = measure_recovery(count, request_s=0.0, rounds=1)
    assert (found.markers, found.segments) == (count, segments)
    assert LINE * count <= found.bytes <= (LINE + 3) * count
    assert found.memory_bytes > LINE


def test_the_page_has_a_line_for_each_count() -> None:
    page = CliRunner().invoke(main, ["1", "60", "--latency-ms", "0", "--rounds", "1"]).stdout
    assert [line.split()[:2] for line in page.splitlines()[1:3]] == [["1", "1"], ["60", "2"]]
