"""Keywords of a write, before there is a table."""

from typing import Any

import pytest

from tallymark.engine.errors import InvalidRequest
from tallymark.engine.jobs.request import WriteRequest


@pytest.mark.parametrize(
    ("keyword", "remedy"),
    [
        ("partiton", "did you mean 'partition'"),
        ("upsert", "a write takes partition_by, partition, partition_overwrite"),
    ],
)
def test_a_keyword_that_no_write_takes_is_named_with_what_to_do(keyword, remedy):
    options: Any = {keyword: 1}
    with pytest.raises(TypeError, match=rf"unexpected keyword '{keyword}': {remedy}"):
        WriteRequest.of("append", **options)


def test_keywords_are_the_fields_of_the_request():
    request = WriteRequest.of("append", partition_by=["month"], txn="load:1")
    assert (request.partition_by, request.txn, request.base) == (["month"], "load:1", None)


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"mode": "upsert", "when_matched": "merge"}, "when_matched='merge': say 'update', 'keep' or 'fail'"),
        ({"mode": "append", "when_matched": "keep"}, "when_matched='keep' is for mode='upsert', and this is 'append'"),
        (
            {"mode": "delete", "delete_column": "gone"},
            "delete_column='gone' is for mode='upsert', and this is 'delete'",
        ),
        ({"mode": "upsert", "delete_column": "gone", "when_matched": "keep"}, "give one of the two"),
        ({"mode": "upsert", "base": 3}, "base=3: mode='upsert' reads the rows that it changes itself"),
    ],
    ids=str,
)
def test_words_of_a_write_by_key_that_mean_nothing_are_refused(options, error):
    with pytest.raises(InvalidRequest, match=error):
        WriteRequest.of(**options)
