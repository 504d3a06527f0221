import io

import pytest
from rich.console import Console

from tallymark.bench.paired import Bar
from tallymark.bench.report import seconds, show, signed
from tests.bench.answers import answer, row, section


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0.00 µs"),
        (1.234e-7, "0.12 µs"),
        (9.994e-6, "9.99 µs"),
        (9.996e-6, "10.0 µs"),
        (99.96e-6, "100 µs"),
        (999.4e-6, "999 µs"),
        (999.6e-6, "1.00 ms"),
        (0.0123, "12.3 ms"),
        (0.9996, "1.00 s"),
        (75.0, "75.0 s"),
        (-0.00012, "-120 µs"),
    ],
)
def test_seconds_have_three_digits_and_a_unit(value, text):
    assert seconds(value) == text


def test_differences_have_a_sign():
    assert (signed(0.0012), signed(-0.0012)) == ("+1.20 ms", "-1.20 ms")


def printed(*rows, width=200):
    text = io.StringIO()
    show(Console(file=text, width=width, highlight=False, markup=False), answer(section(*rows)))
    return text.getvalue()


def test_machine_and_method_stand_above_the_table():
    text = printed(row(ours_us=220))
    assert text.index("A <CPU> & more, 2 cores, 24 GiB") < text.index("at most 201") < text.index("get 1 KiB")


def test_row_shows_each_side_the_cost_the_ratio_and_the_verdict():
    (line,) = [line for line in printed(row(ours_us=220)).splitlines() if "get 1 KiB" in line]
    assert line.split()[:9] == ["get", "1", "KiB", "160", "µs", "200", "µs", "220", "µs"]
    assert "+20.0 µs (+15.0 to +25.0)" in line
    assert "1.10 (1.08 to 1.12)" in line
    assert line.split()[-1] == "yes"


@pytest.mark.parametrize(("ours_us", "word"), [(260, "no"), (250, "?")])
def test_what_is_over_the_bar_or_may_be_is_told(ours_us, word):
    (line,) = [line for line in printed(row(ours_us=ours_us)).splitlines() if "get 1 KiB" in line]
    assert line.split()[-1] == word


def test_the_bars_that_are_told_are_those_of_the_rows():
    loose = Bar(share=0.5, seconds=0)
    assert "Bar: 5% or 50 µs a call" in " ".join(printed(row(ours_us=220)).split())
    assert "Bar: 50% or 0 µs a call" in " ".join(printed(row(ours_us=220, bar=loose)).split())
    assert "Bar: 5% or 50 µs; 50% or 0 µs" in " ".join(printed(row(ours_us=220), row(ours_us=9, bar=loose)).split())
    assert "Bar:" not in printed(row(ours_us=9, floor=True))


def test_nothing_is_cut_off_on_a_narrow_terminal():
    text = printed(row(ours_us=220), width=80)
    assert "…" not in text
    assert "1.10" in text
