"""The question ``history``: a table's bookkeeping while commits accumulate."""

from functools import partial

import anyio
import pytest

from tallymark.bench.history import question


@pytest.mark.release
def test_objects_stay_bounded_and_every_figure_is_measured():
    [table] = anyio.run(partial(question.tables, 400, lambda _: None), backend="trio")
    assert [row.commits for row in table.rows] == [10, 100, 400]
    assert table.rows[-1].objects < 600
    assert all(row.commit_requests and row.open_requests and row.clean_requests for row in table.rows)
