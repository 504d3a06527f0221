"""What docs/deploying.md lets executors do without is what the tests withhold from them."""

from tests.docs.markdown import names_in, table_after
from tests.packaging import needs


def test_the_page_names_what_tasks_import() -> None:
    task, loop, stores, *_ = (set(names_in(row[0])) for row in table_after("deploying.md", "## Which packages, where"))
    assert task == set(needs.TASK)
    assert loop == set(needs.LOOP) - {"attr"}, "which comes with attrs"
    assert stores == set(needs.OBJECT_STORES)
