import msgpack
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tallymark.engine.errors import InvalidRequest
from tallymark.engine.tasks.report import TaskReport
from tallymark.engine.timeline.entry import DataFile

texts = st.text(st.characters(exclude_categories=["Cs"]))
counts = st.integers(0, 2**63)
seconds = st.floats(0, 1e9)
reports = st.builds(
    TaskReport,
    instant=texts,
    task=counts,
    attempt=counts,
    files=st.lists(st.builds(DataFile, texts, texts, counts, counts)).map(tuple),
    unused=st.lists(texts).map(tuple),
    direct_markers=counts,
    marker_wait_s=seconds,
    seconds=seconds,
)


@settings(deadline=None)
@given(reports)
def test_a_report_survives_its_bytes(report):
    assert TaskReport.decode(report.encode()) == report


@settings(deadline=None)
@given(reports)
def test_a_report_counts_the_rows_of_its_files(report):
    assert report.rows == sum(file.rows for file in report.files)


@pytest.mark.parametrize(
    "data",
    [b"", b"\xc1", b"\x01", msgpack.packb({"format": 1}), msgpack.packb({"format": 2, "files": [], "unused": []})],
)
def test_bytes_of_something_else_are_refused(data):
    with pytest.raises(InvalidRequest, match="no task report of this release"):
        TaskReport.decode(data)
