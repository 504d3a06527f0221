import pytest

from tallymark.engine.errors import InvalidRequest
from tallymark.engine.inspection.explain import paths_below

FILE = "month=1/a.parquet"


@pytest.mark.parametrize(
    ("url", "text"),
    [
        ("file:///lake/flights", FILE),
        ("file:///lake/flights", f"./{FILE}"),
        ("file:///lake/flights", f"/lake/flights/{FILE}"),
        ("file:///lake/flights", f"file:/lake/flights/{FILE}"),
        ("file:///lake/my%20flights", f"/lake/my flights/{FILE}"),
        ("file:///lake/my%20flights", f"file:///lake/my%20flights/{FILE}"),
        ("s3://bucket/flights", f"s3a://bucket/flights/{FILE}"),
        ("s3://bucket", f"s3://bucket/{FILE}"),
        ("hdfs://node:8020/flights", f"hdfs://node:8020/flights/{FILE}"),
    ],
)
def test_a_file_is_named_by_its_path_or_by_its_url(url, text):
    assert paths_below(url, text) == (FILE,)


def test_percent_signs_of_partition_paths_are_told_from_those_of_urls():
    assert paths_below("file:///lake", "p=a%3Ab/f") == ("p=a%3Ab/f",)
    assert paths_below("file:///lake", "file:///lake/p=a%253Ab/f")[0] == "p=a%3Ab/f"
    assert paths_below("file:///lake", "/lake/p=a%3Ab/f")[0] == "p=a%3Ab/f"
    assert set(paths_below("s3://lake/t", "s3a://lake/t/p=a%253Ab/f")) == {"p=a%3Ab/f", "p=a%253Ab/f"}


@pytest.mark.parametrize(
    "text",
    ["/lake/flights", "/lake/flights2/a.parquet", "s3://lake/flights/a.parquet", "../a", "/lake/flights/../a", ""],
)
def test_what_does_not_lie_below_the_table_is_refused_by_name(text):
    with pytest.raises(InvalidRequest, match=f"{text!r}"):
        paths_below("file:///lake/flights", text)
