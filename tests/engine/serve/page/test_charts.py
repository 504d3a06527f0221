"""Charts as SVG: a bar for each value, to scale, with its figures as text."""

import re

from tallymark.engine.serve.page.charts import BOTTOM, TOP, commit_chart, size_chart
from tests.engine.serve.page.documents import golden


def heights(svg: str) -> list[float]:
    return [float(found) for found in re.findall(r'<rect class="(?:bar|small)"[^>]* height="([\d.]+)"', svg)]


def sizes(*files: int):
    buckets = [
        {"least": 1 << 24 + number, "below": 2 << 24 + number, "files": count, "bytes": count << 24}
        for number, count in enumerate(files)
    ]
    return {**golden("files"), "buckets": buckets}


def test_the_highest_bar_fills_the_chart_and_a_small_value_is_seen():
    assert heights(size_chart(sizes(1000, 500, 0, 1))) == [BOTTOM - TOP, (BOTTOM - TOP) / 2, 1.5]


def test_a_bucket_that_contains_the_limit_has_both_colours():
    classes = re.findall(r'<rect class="(bar|small)"', size_chart(sizes(1, 1, 1, 1)))
    assert classes == ["small", "small", "small", "bar", "bar"]  # 16, 32, 64 with the limit of 100, 128 MiB


def test_each_bar_has_its_figures_and_the_chart_a_summary():
    svg = size_chart(sizes(3))
    assert "<title>16.0 MiB to 32.0 MiB: 3 files, 48.0 MiB</title>" in svg
    assert 'aria-label="Files by size: 3 files, half of them up to 1.5 KiB' in svg
    entries = golden("timeline")["entries"]
    assert len(heights(commit_chart(entries, "rows"))) == len(entries)
    assert "Position 1, append: 3 rows" in commit_chart(entries, "rows")


def test_a_chart_without_values_is_empty():
    assert heights(commit_chart([], "bytes")) == heights(size_chart(sizes())) == []
