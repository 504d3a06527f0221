"""What a journal comes to."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tallymark.engine.errors import CorruptObject
from tallymark.engine.views.block import pack_rows, unpack_rows
from tallymark.engine.views.journals import added_rows, block_of, kept_block, removed_rows
from tests.engine.views.stores import row


@given(st.randoms(use_true_random=False))
def test_a_journal_comes_to_the_rows_that_came_less_those_that_went(random):
    journal, rows = b"", {}
    for position in range(1, 1 + random.randint(0, 30)):
        live = sorted(name for name, each in rows.items() if not each.removed_at)
        if live and random.random() < 0.5:
            names = random.sample(live, random.randint(1, len(live)))
            journal += removed_rows(names, position)
            rows |= {name: row(name, added_at=rows[name].added_at, removed_at=position) for name in names}
        else:
            new = [row(f"f{position}x{'é' * each}", added_at=position) for each in range(random.randint(0, 5))]
            journal += added_rows(pack_rows(new))
            rows |= {each.file.name: each for each in new}
    floor = random.randint(0, 30)
    assert list(unpack_rows(block_of(journal), "month=1")) == list(rows.values())
    kept = [each for each in rows.values() if not 0 < each.removed_at <= floor]
    assert list(unpack_rows(kept_block(journal, floor), "month=1")) == kept


@pytest.mark.parametrize("names", [("absent",), ("first", "absent"), ("gone",), ("first", "first")])
def test_a_journal_of_which_a_file_went_that_was_not_there_is_refused(names):
    journal = added_rows(pack_rows([row("first"), row("gone", removed_at=3)]))
    for position, name in enumerate(names, 5):
        journal += removed_rows([name], position)
    with pytest.raises(CorruptObject, match=names[-1]):
        block_of(journal)
