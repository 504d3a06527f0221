"""Keywords of a write, before there is a table."""

from typing import Any

import pytest

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
