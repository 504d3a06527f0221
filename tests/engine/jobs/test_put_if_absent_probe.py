"""No table is made on a store that ignores put-if-absent; and asking leaves nothing."""

import anyio
import pytest

from tallymark.backends import Unavailable
from tallymark.backends.memory import MemoryBackend
from tallymark.engine.errors import InvalidRequest, UnsupportedTable
from tallymark.engine.jobs.prepare import check_exclusive, is_trial
from tallymark.engine.timeline.lease import HEARTBEAT_FOLDER
from tallymark.engine.timeline.properties import PROPERTIES
from tests.engine.jobs.scene import Store, begin, committed, table
from tests.support.faulty import FaultyBackend, lost_answer, lost_request, slow
from tests.support.loops import on_both_loops

TRIALS = f"{HEARTBEAT_FOLDER}/probe-*"


class IgnoresPutIfAbsent(MemoryBackend):
    url = "s3://bucket/flights"

    async def put_new(self, path: str, data: bytes) -> None:
        await self.put(path, data)


@on_both_loops
async def test_no_table_is_made_on_a_store_that_ignores_put_if_absent_and_nothing_is_left():
    backend = IgnoresPutIfAbsent()
    with pytest.raises(UnsupportedTable) as caught:
        async with begin(backend):
            raise AssertionError
    assert isinstance(caught.value, InvalidRequest)
    for part in ("s3://bucket/flights: ", "ignores put-if-absent", "'tallymark doctor s3://bucket/flights'"):
        assert part in str(caught.value)
    assert [entry async for entry in backend.list("")] == []


async def test_the_creation_of_a_table_takes_one_more_round_trip_and_an_existing_table_none(unstaged):
    storage = FaultyBackend(unstaged.backend, *(slow(verb, 1.0) for verb in ("put_new", "delete")))
    begun = anyio.current_time()
    trial = await check_exclusive(storage)
    assert anyio.current_time() - begun == 1.0
    assert storage.paths("put_new") == [trial, trial]
    await committed(unstaged.backend)
    again = FaultyBackend(unstaged.backend)
    await committed(again)
    assert not [path for path in again.paths("put_new") if is_trial(path)]


async def test_it_is_asked_before_anything_else_is_put():
    storage = FaultyBackend(Store(has_staging=True).backend)
    await committed(storage)
    first = [call for call in storage.calls if call.verb in ("put", "put_new")][:3]
    assert [is_trial(call.paths[0]) for call in first] == [True, True, False]
    assert first[2].paths == (PROPERTIES,)


@pytest.mark.parametrize("nth", [1, 2])
@pytest.mark.parametrize("fault", [lost_request, lost_answer])
async def test_one_clear_refusal_is_enough_and_an_open_question_is_not(unstaged, fault, nth):
    storage = FaultyBackend(unstaged.backend, fault("put_new", TRIALS, nth=nth))
    try:
        await committed(storage)
    except Unavailable:
        assert PROPERTIES not in unstaged.objects
        await committed(unstaged.backend)
    assert PROPERTIES in unstaged.objects
    await table(unstaged.backend).clean()


async def test_what_an_author_died_over_does_not_keep_the_next_one_and_is_swept_by_a_clean_after_a_lease(unstaged):
    storage = FaultyBackend(unstaged.backend, lost_request("put_new", PROPERTIES), lost_request("delete", TRIALS))
    with pytest.raises(Unavailable):
        await committed(storage)
    (left,) = unstaged.objects
    assert is_trial(left)
    await committed(unstaged.backend)
    assert left in unstaged.objects
    unstaged.clock.pass_lease()
    await table(unstaged.backend).clean()
    unstaged.check_no_bookkeeping()
    unstaged.check_at_rest()


async def test_a_name_that_somebody_swept_in_between_is_no_fault_of_the_store(unstaged):
    """A writer that was stopped between its two puts for longer than a lease."""

    class Swept(FaultyBackend):
        async def put_new(self, path: str, data: bytes) -> None:
            if len(self.paths("put_new")) == 1:
                await anyio.sleep(1000)
            await super().put_new(path, data)
            if len(self.paths("put_new")) <= 2:
                await self.inner.delete([path])

    storage = Swept(unstaged.backend)
    await check_exclusive(storage)
    assert len(set(storage.paths("put_new"))) == 2
