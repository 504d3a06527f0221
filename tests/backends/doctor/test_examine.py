"""The doctor: what it finds on good and on broken stores, how long it takes, and that it leaves nothing."""

from functools import partial

import anyio
import pytest

from tallymark.backends import NotPermitted, Throttled, Unavailable
from tallymark.backends.checks import Broken
from tallymark.backends.doctor import Diagnosis, Examination, LocalFileSystem
from tallymark.backends.doctor.examine import PROBING_S, REMOVAL_S_MAX
from tallymark.backends.doctor.large import keeps_a_huge_file
from tallymark.backends.doctor.traces import TracedBackend
from tallymark.backends.memory import MemoryBackend
from tallymark.backends.retry import Retries
from tallymark.backends.retrying import RetryingBackend
from tests.backends import broken
from tests.support.faulty import FaultyBackend, hanging, lost_answer, refused, slow
from tests.support.loops import on_virtual_time

DOCTOR_S_MAX = 30.0


async def at_once(function):
    """Threads do not hold virtual time back."""
    return function()


def examination(backend, **how) -> Examination:
    return Examination(backend, now=anyio.current_time, in_thread=at_once, **how)


async def examined(backend, **how) -> Diagnosis:
    return await examination(backend, **how).run()


def promises(found: Diagnosis, result: str) -> set[str]:
    return {each.promise for each in found.findings if each.result == result}


def details(found: Diagnosis) -> dict[str, str]:
    return {each.promise: each.detail for each in found.findings}


@pytest.mark.parametrize("has_staging", [False, True])
@on_virtual_time
async def test_a_store_that_keeps_the_contract_is_fit_and_empty_afterwards(has_staging):
    backend = MemoryBackend(has_staging=has_staging, now=anyio.current_time)
    found = await examined(backend)
    assert (found.is_fit, found.verdict) == (True, "fit: every promise that was tried was kept")
    assert ("closes staging permanently" in {each.promise for each in found.findings}) == has_staging
    assert len(found.findings) == 9 + has_staging
    assert found.left == ()
    assert [entry async for entry in backend.list("")] == []
    assert backend._staging == {}


@pytest.mark.parametrize(
    ("store", "promise"),
    [
        (broken.IgnoresPutIfAbsent, "creates a name once"),
        (broken.ChecksThenPuts, "has one winner of a race"),
        (broken.TakesEqualBytesForItsOwn, "creates a name once"),
        (broken.KeepsDeletedNamesTaken, "creates a name once"),
        (broken.IncludesTheEndOfARange, "gives back what it was given"),
        (broken.CutsLargeObjects, "keeps large objects"),
        (broken.ListsUnsorted, "lists what is there"),
        (broken.ListsWhatItListedBefore, "deletes many at once"),
        (broken.ListsByPrefix, "lists what is there"),
        (broken.RefusesToDeleteWhatIsAbsent, "deletes many at once"),
        (broken.DeletesOneRequestOnly, "deletes many at once"),
        (broken.DecodesNames, "keeps odd names"),
        (broken.ComposesNames, "keeps odd names"),
        (broken.PublishesOverWhatIsThere, "publishes data files whole"),
        (partial(broken.PublishesAfterAClose, has_staging=True), "closes staging permanently"),
    ],
)
@on_virtual_time
async def test_a_store_that_breaks_a_promise_is_not_fit_and_the_promise_is_named(store, promise):
    found = await examined(store())
    assert promise in promises(found, "broken")
    assert not found.is_fit
    assert found.verdict.startswith("not fit: ")


@on_virtual_time
async def test_of_a_store_that_ignores_preconditions_it_says_how_many_won():
    found = await examined(broken.IgnoresPutIfAbsent())
    assert "of 32 writers that created one name at once 32 succeeded" in details(found)["has one winner of a race"]
    assert found.verdict == (
        "not fit: creates a name once: a name was created twice: the store ignores put-if-absent "
        "(If-None-Match: *) (and 1 more)"
    )


@on_virtual_time
async def test_a_store_that_refuses_the_first_put_is_not_asked_for_more():
    storage = FaultyBackend(MemoryBackend(), refused("put", error=NotPermitted("s3:PutObject is missing")))
    found = await examined(storage)
    assert found.verdict.startswith("not fit: gives back what it was given: s3:PutObject is missing")
    assert {each.result for each in found.findings[1:]} == {"untried"}
    assert storage.paths("put") == ["taken"]
    assert found.left == ()


@pytest.mark.parametrize("verb", ["get", "put", "put_new", "list", "delete"])
@on_virtual_time
async def test_a_store_that_hangs_is_a_verdict_within_half_a_minute(verb):
    for storage in (
        FaultyBackend(MemoryBackend(), hanging(verb)),
        RetryingBackend(FaultyBackend(MemoryBackend(), hanging(verb)), Retries()),
    ):
        begun = anyio.current_time()
        found = await examined(storage)
        assert not found.is_fit
        assert anyio.current_time() - begun <= PROBING_S + REMOVAL_S_MAX < DOCTOR_S_MAX


@on_virtual_time
async def test_a_slow_store_is_examined_as_far_as_time_allows_and_swept_or_whole_when_given_more_time():
    storage = FaultyBackend(MemoryBackend(), slow("put", 0.8), slow("put_new", 0.8), slow("delete", 0.3))
    found = await examined(storage)
    assert {each.result for each in found.findings} == {"kept", "untried"}
    assert "no time" in found.verdict
    assert found.left == ()
    assert anyio.current_time() < DOCTOR_S_MAX
    assert [entry async for entry in storage.inner.list("")] == []
    found = await examined(storage, probing_s=100.0)
    assert found.is_fit
    assert 21 < found.seconds < 100


@on_virtual_time
async def test_a_slow_store_gets_fewer_objects_and_fewer_races_and_may_be_fit():
    storage = FaultyBackend(MemoryBackend(), slow("put", 0.3), slow("put_new", 0.3))
    found = await examined(storage)
    assert found.is_fit
    assert details(found)["lists what is there"].startswith("640 objects")
    assert found.seconds < DOCTOR_S_MAX


@on_virtual_time
async def test_where_nothing_can_be_put_any_more_the_probes_go_on():
    storage = FaultyBackend(MemoryBackend(), refused("put", "many*"))
    found = await examined(storage)
    assert promises(found, "broken") >= {"lists what is there", "deletes many at once"}
    assert "keeps odd names" in promises(found, "kept")


@on_virtual_time
async def test_latencies_are_those_of_the_store_and_of_a_slow_one_fewer_are_taken():
    storage = FaultyBackend(MemoryBackend(), slow("put_new", 0.2), slow("get", 0.01))
    found = {each.verb: each for each in (await examined(storage)).latencies}
    assert list(found) == ["put_new", "put", "get", "list", "delete"]
    assert (found["put_new"].count, found["get"].count) == (8, 20)
    assert (found["put_new"].median_s, found["put_new"].mean_s) == pytest.approx((0.2, 0.2))
    assert found["get"].p99_s == pytest.approx(0.01)


@on_virtual_time
async def test_clocks_that_are_apart_are_told_and_are_no_fault():
    backend = MemoryBackend(now=lambda: anyio.current_time() + 90.0)
    found = await examined(backend)
    assert found.clock_skew_s == pytest.approx(90.0)
    assert found.remarks == ("the store's clock and this machine's are 90 s apart; set one of them",)
    assert found.is_fit


@on_virtual_time
async def test_what_cannot_be_removed_is_told_by_name():
    storage = FaultyBackend(MemoryBackend(), refused("delete", error=NotPermitted("s3:DeleteObject is missing")))
    found = await examined(storage)
    assert not found.is_fit
    there = {entry.path async for entry in storage.inner.list("")}
    assert there
    assert there == set(found.left)


@on_virtual_time
async def test_where_nothing_can_be_listed_all_that_was_put_is_told_as_perhaps_left():
    storage = FaultyBackend(MemoryBackend(), refused("list", error=NotPermitted("s3:ListBucket is missing")))
    found = await examined(storage)
    assert "taken (maybe: s3:ListBucket is missing)" in found.left
    assert [entry async for entry in storage.inner.list("")] == []


@on_virtual_time
async def test_a_put_whose_answer_was_lost_is_removed_too():
    storage = FaultyBackend(MemoryBackend(), lost_answer("put", "taken", nth=1))
    found = await examined(storage)
    assert found.verdict.startswith("not fit: gives back what it was given: the answer was lost")
    assert [entry async for entry in storage.inner.list("")] == []


@on_virtual_time
async def test_a_doctor_who_is_interrupted_removes_what_was_put():
    storage = FaultyBackend(MemoryBackend(), slow("put", 0.01))
    interrupted = examination(storage)
    with anyio.move_on_after(0.4) as scope:
        await interrupted.run()
    assert scope.cancelled_caught
    assert len(storage.paths("put")) > 20
    assert [entry async for entry in storage.inner.list("")] == []
    assert interrupted.left == ()


@on_virtual_time
async def test_a_large_file_is_tried_when_asked_for_and_the_rest_was_kept():
    tried = []
    await examined(broken.IgnoresPutIfAbsent(), is_large=True, report=tried.append)
    assert "keeps a file of 5 GB" not in tried


@pytest.mark.parametrize("size", [0, 1, 4 << 20, 9_000_001])
@on_virtual_time
async def test_the_large_file_has_the_size_that_was_asked_for(size):
    backend = MemoryBackend(has_staging=True)
    await keeps_a_huge_file(TracedBackend(backend, in_thread=at_once), size)
    assert [entry.size async for entry in backend.list("huge")] == [size]


@on_virtual_time
async def test_a_large_file_that_nobody_waits_for_is_written_no_further():
    backend = MemoryBackend(has_staging=True)
    late = []

    async def given_up(function):
        late.append(function)
        raise TimeoutError

    with pytest.raises(TimeoutError):
        await keeps_a_huge_file(TracedBackend(backend, in_thread=given_up), 100)
    late[0]()
    assert [entry async for entry in backend.list("huge")] == []


@on_virtual_time
async def test_a_large_file_that_arrives_shorter_is_found():
    class Short(MemoryBackend):
        def _create(self, path, data):
            super()._create(path, data[:100])

    with pytest.raises(Broken, match="a file of 200 bytes is listed with 100 bytes"):
        await keeps_a_huge_file(TracedBackend(Short(), in_thread=at_once), 200)


@on_virtual_time
async def test_it_says_what_it_tries():
    tried = []
    await examined(MemoryBackend(), report=tried.append)
    assert tried[0] == "gives back what it was given"
    assert tried[-1] == "removing what was put"


@pytest.mark.parametrize("error", [Unavailable("reset"), Throttled("slow down")])
@on_virtual_time
async def test_a_promise_without_an_answer_was_not_kept(error):
    found = await examined(FaultyBackend(MemoryBackend(), refused("list", error=error)))
    assert "lists what is there" in promises(found, "broken")


@on_virtual_time
async def test_remarks_on_the_ground_are_the_diagnosis_s():
    ground = LocalFileSystem("/mnt", "nfs4", "/mnt", is_read_only=True, free_bytes=5_000_000)
    found = await examined(MemoryBackend(now=anyio.current_time), ground=ground)
    assert [remark.split(":")[0].split(" is ")[0] for remark in found.remarks] == ["/mnt", "/mnt", "/mnt"]
    assert "nfs4" in found.remarks[0]
    assert "read-only" in found.remarks[1]
    assert "5 MB are free" in found.remarks[2]
