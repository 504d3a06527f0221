"""A table as it was: by position, by instant, by time; and what is said of what was not, or is no more."""

from datetime import UTC, datetime, timedelta, timezone

import pytest

from tallymark.engine.errors import InvalidRequest
from tests.engine.jobs.scene import Store, WallClock, abandon, committed, table
from tests.support.loops import on_both_loops

HOUR_S = 3600.0


def at(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


async def rows_as_of(store: Store, as_of=None) -> int:
    return (await table(store.backend).snapshot(as_of=as_of)).rows


async def three_commits(store: Store, **made) -> list:
    """One row, then two, then three instead; an hour apart. Returns the results."""
    results = [await committed(store.backend, months={1: 1}, **made)]
    store.clock.now += HOUR_S
    results.append(await committed(store.backend, months={2: 1}))
    store.clock.now += HOUR_S
    results.append(await committed(store.backend, "overwrite", {1: 3}))
    return results


@on_both_loops
async def test_a_time_is_the_newest_commit_decided_by_then_by_the_stores_clock(unstaged):
    begun = unstaged.clock.now
    await three_commits(unstaged, readers="table")
    for seconds, rows in ((0, 1), (HOUR_S - 1, 1), (HOUR_S, 2), (2 * HOUR_S - 1, 2), (2 * HOUR_S, 3), (9e5, 3)):
        assert await rows_as_of(unstaged, at(begun + seconds)) == rows
        assert await rows_as_of(unstaged, at(begun + seconds).isoformat()) == rows
    elsewhere = at(begun).astimezone(timezone(timedelta(hours=5, minutes=30)))
    assert await rows_as_of(unstaged, elsewhere) == 1
    assert await rows_as_of(unstaged, at(begun).isoformat().replace("+00:00", "Z")) == 1


async def test_a_write_that_began_early_and_committed_late_is_not_there_in_between(unstaged):
    """Who looked in between did not see it: the time of its instant is not the time of its commit."""
    early, late = WallClock(datetime(2026, 11, 21, 8, tzinfo=UTC)), WallClock(datetime(2026, 11, 21, 9, tzinfo=UTC))
    await committed(unstaged.backend, months={1: 1}, clock=late, readers="table")
    between = unstaged.clock.now
    unstaged.clock.now += HOUR_S
    await committed(unstaged.backend, months={2: 1}, clock=early)
    assert await rows_as_of(unstaged, at(between)) == 1


async def test_a_position_of_a_rollback_or_a_clean_is_the_state_before_it(unstaged):
    await committed(unstaged.backend, months={1: 1}, readers="table")
    instant = await abandon(unstaged)
    unstaged.clock.pass_lease()
    await committed(unstaged.backend, "overwrite", {1: 2})
    await table(unstaged.backend).clean(retain_hours=0)
    *others, (_, clean) = await table(unstaged.backend).timeline()
    assert [entry.kind for _, entry in others] == ["commit", "rollback", "commit"]
    assert [await rows_as_of(unstaged, position) for position in (3, 4)] == [2, 2]
    with pytest.raises(InvalidRequest, match=f"as_of='{instant}': that instant was rolled back, at position 2"):
        await rows_as_of(unstaged, instant)
    assert clean.kind == "clean"
    with pytest.raises(InvalidRequest, match="no such instant was committed"):
        await rows_as_of(unstaged, clean.instant)


@pytest.mark.parametrize(
    ("as_of", "told"),
    [
        (4, r"as_of=4: the table has positions 0 \(empty\) to 3"),
        (-1, r"as_of=-1: the table has positions 0 \(empty\) to 3"),
        ("20261121000000000", "as_of='20261121000000000': no such instant was committed; 'tallymark timeline' lists"),
        (datetime(1970, 1, 2, tzinfo=UTC), "nothing had been committed by then; the first was at 1970-01-12T13:46:40"),
        ("1970-01-02T00:00:00+00:00", "nothing had been committed by then"),
        (datetime(2999, 1, 1, tzinfo=UTC), "as_of='2999-01-01T00:00:00.00:00' is still to come; leave as_of out"),
        ("2999-01-01T00:00:00Z", "is still to come"),
        (datetime(2026, 1, 1), "as_of='2026-01-01T00:00:00' has no time zone.*add one"),  # noqa: DTZ001
        ("2026-01-01T09:00", "has no time zone"),
        ("2026-01-01", "has no time zone"),
        ("2026-13-01T00:00:00Z", "is neither a position, an instant of 17 digits nor a time"),
        ("yesterday", "as_of='yesterday' is neither a position, an instant of 17 digits nor a time"),
        ("2", "as_of='2' is neither a position"),
        ("", "as_of='' is neither a position"),
        (True, "as_of=True is neither a position"),
        (1.0, "as_of=1.0 is neither a position"),
    ],
)
async def test_what_was_never_there_is_refused_in_a_line(unstaged, as_of, told):
    await three_commits(unstaged, readers="table")
    before = unstaged.objects
    with pytest.raises(InvalidRequest, match=told):
        await table(unstaged.backend).snapshot(as_of=as_of)
    assert unstaged.objects == before


async def test_a_table_without_commits_was_empty_at_position_0_and_at_no_time(unstaged):
    await abandon(unstaged)
    assert await rows_as_of(unstaged, 0) == 0
    with pytest.raises(InvalidRequest, match="nothing had been committed by then; there is none yet"):
        await rows_as_of(unstaged, at(unstaged.clock.now))


async def test_what_a_clean_has_let_go_is_refused_with_the_first_position_that_is_retained(unstaged):
    begun = unstaged.clock.now
    results = await three_commits(unstaged, readers="table")
    await table(unstaged.backend).clean(retain_hours=0)
    told = (
        "no longer all retained: a clean has let go what was replaced before.*; retained is everything since position 3"
    )
    for as_of in (1, 2, results[1].instant, at(begun + HOUR_S)):
        with pytest.raises(InvalidRequest, match=told + ".* or a time after 1970-01-12T15:46:40") as refused:
            await rows_as_of(unstaged, as_of)
        named = as_of.isoformat() if isinstance(as_of, datetime) else as_of
        assert f"as_of={named!r}" in str(refused.value)
    assert await rows_as_of(unstaged, 3) == 3
    assert await rows_as_of(unstaged, 0) == 0


async def test_a_directory_table_has_old_positions_until_an_overwrite(unstaged):
    await three_commits(unstaged)
    told = "what an overwrite replaces, or an append fills, is deleted at once; retained is .* since position 3"
    with pytest.raises(InvalidRequest, match=told):
        await rows_as_of(unstaged, 2)
    await committed(unstaged.backend, months={2: 1})
    assert [await rows_as_of(unstaged, position) for position in (3, 4)] == [3, 4]


async def test_times_never_go_back_even_if_the_stores_clock_does(unstaged):
    await committed(unstaged.backend, months={1: 1}, readers="table")
    unstaged.clock.now -= 1000
    await committed(unstaged.backend, months={2: 1})
    assert await rows_as_of(unstaged, at(unstaged.clock.now + 1000)) == 2
    with pytest.raises(InvalidRequest, match="nothing had been committed by then"):
        await rows_as_of(unstaged, at(unstaged.clock.now))
