import json

import pytest

from tests.bench.answers import US, answer, row, section


def test_document_holds_what_was_measured_and_where():
    document = answer(section(row(ours_us=220))).document()
    assert document.keys() == {"format", "question", "began", "machine", "method", "sections"}
    assert (document["format"], document["question"]) == (1, "backends")
    assert document["began"] == "2026-11-21T08:00:00+00:00"
    assert document["machine"]["libraries"] == {"obstore": "0.12.1"}
    assert document["method"] == {"round_count": 201, "case_s": 2.0, "sample_s": 0.004}
    assert [(found["title"], found["peer"]) for found in document["sections"]] == [("S3", "obstore")]


def test_document_of_a_row_has_every_sample_and_every_comparison():
    (found,) = answer(section(row(ours_us=220))).document()["sections"][0]["rows"]
    assert (found["label"], found["concurrency"], found["calls_per_sample"], found["rounds"]) == ("get 1 KiB", 1, 40, 6)
    assert (found["reference"], found["verdict"]) == ("thread", "within")
    assert found["sides"].keys() == {"plain", "thread", "ours"}
    assert found["sides"]["ours"].keys() == {"per_call_s", "samples_s"}
    assert len(found["sides"]["ours"]["samples_s"]) == 6
    against = found["sides"]["thread"]["ours_against_it"]
    assert against["ratio"] == pytest.approx({"value": 1.1, "low": 1.075, "high": 1.125})
    assert against["difference_s"]["low"] == pytest.approx(15 * US)
    assert found["sides"]["plain"]["ours_against_it"]["verdict"] == "over"


def test_document_survives_json():
    document = answer(section(row(ours_us=220), row(ours_us=9, floor=True))).document()
    assert json.loads(json.dumps(document)) == document


def test_a_floor_has_no_verdict():
    floor = row(ours_us=300, floor=True)
    assert floor.verdict is None
    assert floor.document()["sides"]["plain"]["ours_against_it"]["verdict"] is None


@pytest.mark.parametrize(("ours_us", "expected"), [(240, "within"), (260, "over"), (250, "unclear")])
def test_verdict_is_on_the_reference(ours_us, expected):
    assert row(ours_us=ours_us).verdict == expected
