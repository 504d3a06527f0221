import json
from xml.etree import ElementTree as ET

import pytest
from click.testing import CliRunner

from tallymark.bench.__main__ import main

CREDENTIALS = "tests.support.services.gcs_facade:credentials"


def run(*arguments):
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


def on_gcs(gcs):
    return ("--storage", f"endpoint={gcs.endpoint}", "--storage", f"credentials={CREDENTIALS}")


def test_without_a_question_the_questions_are_listed():
    result = run()
    assert result.exit_code == 0
    assert "backends  Measure what a storage call costs" in result.stdout


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    """A quick run on memory and on a disk."""
    folder = tmp_path_factory.mktemp("bench")
    (folder / "store").mkdir()
    (folder / "store" / "mine").write_text("not the harness's")
    places = ("--url", "memory:", "--url", folder / "store")
    files = ("--json", folder / "answer.json", "--svg", folder / "answer.svg")
    return run("backends", *places, *files, "--quick", "--seconds", 0.5), folder


def test_quick_run_shows_a_table_for_each_store(measured):
    result, _ = measured
    assert (result.exit_code, result.stderr) == (0, "")
    assert "memory (this process; the floor of the harness) beside dict" in result.stdout
    assert "beside os calls" in result.stdout
    assert result.stdout.count("put_new 1 KiB, 8 at once") == 2


def test_json_has_a_row_for_every_case_of_every_store(measured):
    _, folder = measured
    tables = json.loads((folder / "answer.json").read_text())["tables"]
    labels = [[row["title"] for row in table["rows"]] for table in tables]
    assert len(labels) == 2
    assert labels[0] == labels[1]
    assert {label.partition(" ")[0] for label in labels[0]} == {"get", "put", "put_new", "list", "delete", "data"}
    disk = {row["title"]: row for row in tables[1]["rows"]}
    assert disk["get 1 KiB"]["samples_s"].keys() == {"plain", "thread", "ours"}
    assert disk["data file 1 MB"]["samples_s"].keys() == {"plain", "ours"}
    assert all(6 <= len(row["samples_s"]["ours"]) <= 21 for row in disk.values())


def test_svg_is_written(measured):
    _, folder = measured
    assert ET.parse(folder / "answer.svg").getroot().tag == "{http://www.w3.org/2000/svg}svg"


def test_nothing_is_left_on_the_store_and_nothing_else_is_touched(measured):
    _, folder = measured
    assert [path.name for path in (folder / "store").iterdir()] == ["mine"]


def test_an_object_store_of_the_users_own_is_measured_and_left_as_it_was(gcs, tmp_path):
    bucket, answer = gcs.bucket(), tmp_path / "answer.json"
    how = on_gcs(gcs)
    result = run("backends", "--url", f"gs://{bucket}/mine", *how, "--quick", "--seconds", 0.5, "--json", answer)
    assert (result.exit_code, result.stderr) == (0, "")
    (table,) = json.loads(answer.read_text())["tables"]
    assert table["title"] == f"GCS (gs://{bucket}/mine at {gcs.endpoint}) beside obstore"
    assert gcs.keys(bucket) == []


def test_an_hdfs_is_measured_in_a_directory_that_is_there_and_left_as_it_was(dfs, tmp_path):
    answer = tmp_path / "answer.json"
    refused = run("backends", "--url", f"{dfs.url}/bench", "--quick")
    assert refused.exit_code == 1
    assert "/bench is not a directory; make it first" in refused.stderr
    dfs.make_directory("/bench", permission=0o777)
    result = run("backends", "--url", f"{dfs.url}/bench", "--quick", "--rounds", 2, "--json", answer)
    assert (result.exit_code, result.stderr) == (0, "")
    (table,) = json.loads(answer.read_text())["tables"]
    assert (table["title"].startswith("HDFS ("), table["title"].endswith("beside hdfs-native")) == (True, True)
    assert (dfs.objects("/bench"), dfs.directories("/bench")) == ({}, [])


@pytest.mark.parametrize(
    ("option", "said"),
    [
        (("--storage", "colour=red"), "colour is not known"),
        (("--json", "/no/such/place/answer.json"), "answer.json cannot be written"),
    ],
)
def test_what_cannot_be_done_is_refused_before_anything_is_measured(option, said):
    result = run("backends", "--url", "memory:", *option)
    assert result.exit_code == 2
    assert said in result.stderr


def test_a_store_that_refuses_is_one_line_that_says_why(gcs):
    how = on_gcs(gcs)
    result = run("backends", "--url", "gs://no-such-bucket", *how, "--quick")
    assert result.exit_code == 1
    assert "no-such-bucket" in result.stderr
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("url", "said"),
    [("/no/such/place", "/no/such/place is not a directory of this machine"), ("ftp://host/x", "no library to hold")],
)
def test_a_store_that_cannot_be_measured_is_one_line(url, said):
    result = run("backends", "--url", url)
    assert result.exit_code == 1
    assert said in result.stderr
    assert result.stderr.count("\n") == 1
