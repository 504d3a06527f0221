"""The conformance suite catches each store that breaks a promise, by the test that is named after the promise."""

import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from tests.backends import broken_suite

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]

CAUGHT_BY = {
    "IgnoresPutIfAbsent": "a_taken_name_is_refused_and_keeps_its_bytes",
    "ChecksThenPuts": "of_many_writers_of_one_new_name_exactly_one_wins_round_after_round",
    "TakesEqualBytesForItsOwn": "a_name_that_is_taken_with_the_same_bytes_is_refused_too",
    "KeepsDeletedNamesTaken": "a_name_is_free_again_after_its_delete",
    "KeepsTheCallersBuffer": "a_stored_object_does_not_change_with_the_buffer_it_came_from",
    "IncludesTheEndOfARange": "a_range_has_the_bytes_between_its_ends",
    "RefusesARangeBeyondTheEnd": "a_range_ends_with_its_object",
    "CountsANegativeStartFromTheEnd": "a_range_that_no_object_has_is_a_value_error",
    "ReadsARangeOfNothing": "getting_what_is_not_there_is_not_found",
    "ReadsARangeInTwoSteps": "a_reader_beside_replacing_puts_sees_one_whole_put",
    "KeepsTheRangesItHasRead": "a_get_sees_the_put_that_has_just_returned",
    "PutsInTwoSteps": "a_reader_beside_replacing_puts_sees_one_whole_put",
    "CutsLargeObjects": "a_large_object_is_put_if_absent_whole",
    "ListsUnsorted": "a_listing_shows_every_object_below_at_any_depth_sorted_by_path",
    "ListsByPosition": "a_listing_during_deletes_misses_no_kept_object_and_invents_none",
    "ListsWhatItListedBefore": "a_listing_during_deletes_misses_no_kept_object_and_invents_none",
    "ListsByPrefix": "a_directory_ends_at_a_slash",
    "ShowsObjectsAsFolders": "folders_are_those_directly_below_sorted_and_once_each",
    "RefusesToDeleteWhatIsAbsent": "deleting_what_is_absent_is_fine",
    "DeletesOneRequestOnly": "one_delete_takes_more_objects_than_one_request_absent_ones_among_them",
    "DecodesNames": "names_that_look_alike_when_encoded_are_different",
    "ComposesNames": "names_that_differ_in_unicode_form_or_case_are_different",
    "LosesTheBytesOfASecondName": "the_same_bytes_go_under_another_name",
    "PublishesOverWhatIsThere": "publishing_onto_a_taken_path_is_refused_and_leaves_it_untouched",
    "PublishesAfterAClose": "nothing_is_published_once_staging_is_closed",
    "PublishesAfterACloseAndAnOpen": "what_was_begun_before_a_close_stays_closed_when_staging_is_opened_again",
    "BeginsFilesWithoutStaging": "a_file_cannot_be_begun_without_its_staging_directory",
}


@pytest.fixture(scope="module")
def broken_promises(tmp_path_factory) -> dict[str, set[str]]:
    """By store, the promises that the suite found broken."""
    report = tmp_path_factory.mktemp("suite") / "report.xml"
    run_suite(ROOT / "tests/backends/broken_suite.py", f"--junitxml={report}", "--tb=no")
    found: dict[str, set[str]] = defaultdict(set)
    for case in ET.parse(report).iter("testcase"):
        store = case.attrib["classname"].rpartition(".Test")[2]
        found[store] |= {case.attrib["name"].partition("[")[0].removeprefix("test_")} if len(case) else set()
    return found


def run_suite(*arguments: str | Path, cwd: Path = ROOT) -> str:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *map(str, arguments)]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False, timeout=900).stdout


@pytest.mark.parametrize("store", CAUGHT_BY)
def test_a_store_that_breaks_a_promise_is_caught_by_the_test_of_its_name(store, broken_promises):
    assert CAUGHT_BY[store] in broken_promises[store]


def test_a_store_that_keeps_all_promises_breaks_none(broken_promises):
    assert broken_promises["MemoryBackend"] == set()


def test_each_broken_store_has_a_promise_that_catches_it():
    assert {"MemoryBackend", *CAUGHT_BY} == {store.__name__ for store in broken_suite.STORES}


def test_the_ten_lines_of_the_docs_test_a_backend(tmp_path):
    page = (ROOT / "docs/storage.md").read_text()
    section = page.partition("## Test your own backend")[2]
    (tmp_path / "test_my_store.py").write_text(re.findall(r"```python\n(.*?)```", section, re.DOTALL)[0])
    (tmp_path / "my_store.py").write_text(MY_STORE)
    assert re.search(r"\d\d passed", run_suite(tmp_path / "test_my_store.py", "-k", "put or name", cwd=tmp_path))


MY_STORE = """
from tallymark.backends.memory import MemoryBackend


class MyStore(MemoryBackend):
    def __init__(self, url):
        super().__init__()
        self.url = url

    def all_objects(self):
        return {path: data for path, (data, _) in self._objects.items()}
"""
