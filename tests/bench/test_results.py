import json
from dataclasses import dataclass
from io import StringIO

import pytest
from rich.console import Console

from tallymark.bench.backends import BAR, call_row
from tallymark.bench.method import Samples
from tallymark.bench.paired import Estimate
from tallymark.bench.results import WIDTH, Chart, Table, column, results, seconds, signed_seconds, size


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    title: str = column("")
    took_s: float | None = column("took", seconds)
    ratio: Estimate = column("ratio")
    count: int = column("count")
    note: str | None = column("note")
    samples_s: tuple[float, ...] = ()


ROWS = [
    Row(title="one", took_s=0.0125, ratio=Estimate(1.2, 1.1, 1.3), count=1200, note=None, samples_s=(0.01,)),
    Row(title="other", took_s=None, ratio=Estimate(0.8, 0.7, 0.9), count=3, note=None),
]


def test_a_table_shows_declared_columns_in_their_units_and_leaves_empty_ones_out():
    assert Table(title="t", rows=ROWS).cells() == (
        ["", "took", "ratio", "count"],
        [["one", "12.5 ms", "1.20 (1.10 to 1.30)", "1,200"], ["other", "", "0.80 (0.70 to 0.90)", "3"]],
    )


def test_people_see_the_method_the_tables_and_which_sides_are_absent():
    page = StringIO()
    found = results("q", "the method", None, [Table(title="a table", rows=ROWS, absent={"Hudi": "no Java"})])
    found.show(Console(file=page, width=WIDTH))
    for text in ("the method", "a table", "12.5 ms", "without Hudi: no Java"):
        assert text in page.getvalue()


def test_the_document_has_every_field_and_the_chart_every_row(tmp_path):
    table = Table(title="a table", rows=ROWS, charts=(Chart(values=("ratio",)), Chart(values=("count",), x="count")))
    results("q", "", None, [table]).save(tmp_path / "a.json", tmp_path / "a.svg")
    [saved] = json.loads((tmp_path / "a.json").read_text())["tables"]
    assert saved["rows"][0]["samples_s"] == [0.01]
    assert saved["rows"][1]["ratio"] == {"value": 0.8, "low": 0.7, "high": 0.9}
    assert "other" in (tmp_path / "a.svg").read_text()


@pytest.mark.parametrize(
    ("value", "text"), [(0.0, "0.00 µs"), (99e-6, "99.0 µs"), (0.0009996, "1.00 ms"), (1.234, "1.23 s"), (61, "61.0 s")]
)
def test_times_have_three_digits_and_a_unit(value, text):
    assert seconds(value) == text


def test_differences_have_signs_and_sizes_have_units():
    assert signed_seconds(Estimate(1e-3, -2e-6, 2e-3)) == "+1.00 ms (-2.00 µs to +2.00 ms)"
    assert (size(999), size(2_500_000)) == ("999 B", "2.5 MB")


def test_ours_is_compared_with_the_call_in_a_thread_and_without_one_with_the_plain_call():
    taken: dict[str, tuple[float, ...]] = {"plain": (1e-3,) * 6, "thread": (2e-3,) * 6, "ours": (2.01e-3,) * 6}
    row = call_row("get", Samples(4, taken), BAR)
    assert row.ratio.value == pytest.approx(1.005)
    assert row.verdict == "within"
    del taken["thread"]
    assert call_row("get", Samples(4, taken), BAR).verdict == "over"
    assert call_row("get", Samples(4, taken), None).verdict is None
