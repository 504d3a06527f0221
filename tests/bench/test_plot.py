from xml.etree import ElementTree as ET

import pytest

from tallymark.bench.paired import Bar
from tallymark.bench.plot import LEFT, RIGHT, WIDTH, _x, draw
from tests.bench.answers import answer, row, section

SVG = "{http://www.w3.org/2000/svg}"


def drawn(*rows):
    return ET.fromstring(draw(answer(section(*rows))))


def texts(root):
    return [element.text for element in root.iter(f"{SVG}text")]


def test_svg_is_well_formed_whatever_machine_and_store_are_called():
    root = drawn(row(ours_us=220))
    assert root.tag == f"{SVG}svg"
    assert any("A <CPU> & more" in text for text in texts(root))
    assert [element.text for element in root.iter(f"{SVG}tspan")] == ["a <server> of this harness"]


def test_each_row_is_labelled_and_has_its_figures():
    found = texts(drawn(row(ours_us=220, label="get 1 KiB"), row(ours_us=400, label="put 1 KiB")))
    assert {"get 1 KiB", "put 1 KiB", "+20.0 µs", "220 µs", "+200 µs"} <= set(found)


def test_a_floor_is_not_drawn():
    assert "memory floor" not in texts(drawn(row(ours_us=9, floor=True, label="memory floor"), row(ours_us=220)))


@pytest.mark.parametrize("ours_us", [5.001, 190, 220, 1e9])
def test_marks_stay_on_the_axis_and_what_lies_beyond_is_an_arrow(ours_us):
    root = drawn(row(ours_us=ours_us))
    marks = [circle for circle in root.iter(f"{SVG}circle") if circle.find(f"{SVG}title") is not None]
    arrows = list(root.iter(f"{SVG}path"))
    assert len(marks) + len(arrows) == 2
    assert bool(arrows) == (ours_us not in (190, 220))
    assert all(LEFT <= float(circle.get("cx")) <= RIGHT for circle in marks)
    assert all(0 <= float(line.get("x2")) <= WIDTH for line in root.iter(f"{SVG}line"))


def test_colour_tells_the_verdict():
    def fill(ours_us):
        marks = [c for c in drawn(row(ours_us=ours_us)).iter(f"{SVG}circle") if c.find(f"{SVG}title") is not None]
        return marks[-1].get("fill")

    assert len({fill(220), fill(250), fill(300)}) == 3
    assert fill(220) == fill(190)


def test_the_shaded_stretch_and_its_legend_are_of_the_bar_that_the_rows_have():
    root = drawn(row(ours_us=220, bar=Bar(share=0.5, seconds=0)))
    [stretch] = [found for found in root.iter(f"{SVG}rect") if found.get("x") == f"{LEFT}"]
    assert LEFT + float(stretch.get("width")) == pytest.approx(_x(1.5), abs=0.1)
    assert "within the bar: 50% or 0 µs" in texts(root)


def test_picture_grows_with_its_rows():
    heights = [int(drawn(*[row(ours_us=220)] * count).get("height")) for count in (1, 2, 3)]
    assert heights[1] - heights[0] == heights[2] - heights[1] > 0
