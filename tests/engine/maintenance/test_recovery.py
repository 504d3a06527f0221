"""Writers that others take for dead: when, what becomes of them, what their tasks can still do."""

from dataclasses import replace
from typing import Any

import anyio
import pytest

from tallymark.backends.errors import NotFound
from tallymark.engine.errors import RolledBack, Sealed
from tallymark.engine.settings import LeaseSettings, MarkerSettings
from tallymark.engine.timeline.lease import heartbeat_path
from tallymark.engine.timeline.reservation import OPEN_FOLDER, Reservation
from tallymark.engine.timeline.writer_identity import WriterIdentity
from tests.engine.jobs.scene import (
    LEASE,
    Store,
    abandon,
    begin,
    committed,
    die,
    flights,
    mark,
    name_of,
    publish,
    table,
    write_rows,
)
from tests.support.faulty import FaultyBackend, lost_request, slow

kinds = pytest.mark.parametrize("kind", ["batched", "direct"])


async def abandon_elsewhere(store: Store, **where: Any) -> str:
    """As ``abandon``, by a process that has ended; on this machine, but for ``where``."""
    instant = await abandon(store)
    path = f"{OPEN_FOLDER}/{instant}"
    writer = replace(WriterIdentity.here(), started="1", **where)
    changed = replace(Reservation.decode(store.objects[path], source=path), writer=writer)
    await store.backend.put(path, changed.encode())
    return instant


async def test_a_writer_of_this_machine_whose_process_is_gone_is_rolled_back_at_once(staged):
    left = await abandon_elsewhere(staged)
    await committed(staged.backend)
    assert staged.decisions[left]["kind"] == "rollback"
    staged.check_at_rest()


@pytest.mark.parametrize("field", ["host", "boot_id", "pid_namespace"])
async def test_of_a_writer_elsewhere_only_its_lease_tells(staged, field):
    left = await abandon_elsewhere(staged, **{field: "another"})
    staged.clock.now += LEASE.expiry_s
    await committed(staged.backend)
    assert left not in staged.decisions
    assert f"{OPEN_FOLDER}/{left}" in staged.objects
    staged.clock.pass_lease()
    await table(staged.backend).rollback()
    assert staged.decisions[left]["kind"] == "rollback"
    staged.check_at_rest()


async def test_a_lease_is_as_long_as_its_writer_keeps_it(staged):
    """A helper of less patience does not shorten the lease of others."""
    left = await abandon(staged)
    staged.clock.now += 60
    hasty = table(staged.backend, lease=LeaseSettings(heartbeat_interval_s=1, expiry_s=5))
    assert await hasty.rollback() == ()
    assert left not in staged.decisions


async def test_a_living_writer_is_not_disturbed_however_long_it_writes(staged):
    begun = anyio.current_time()
    staged.backend._now = lambda: 1e6 + anyio.current_time() - begun
    async with begin(staged.backend) as job:
        for _ in range(5):
            await anyio.sleep(100)
            assert await table(staged.backend).rollback() == ()
        await job.commit([await write_rows(job, staged.backend)])
    staged.check_at_rest()


async def test_beats_go_on_while_a_writer_helps_others(staged):
    """Rolling back what others left may take longer than a lease."""
    staged.backend._now = lambda: 1e6 + anyio.current_time()
    await abandon(staged)
    await anyio.sleep(200)
    storage = FaultyBackend(staged.backend, slow("delete", 300, "month=*"))

    async def watch() -> None:
        await anyio.sleep(250)
        helper = table(staged.backend)
        (status,) = [found for found in (await helper.status()).open_instants if found.decision is None]
        assert status.writer == "alive"

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(watch)
        await committed(storage)
    staged.check_at_rest()


@kinds
async def test_a_writer_that_was_rolled_back_cannot_commit_and_leaves_nothing(store, kind):
    await committed(store.backend)
    with pytest.raises(RolledBack):  # noqa: PT012
        async with begin(store.backend, markers=MarkerSettings(kind=kind)) as job:
            report = await write_rows(job, store.backend)
            store.clock.pass_lease()
            await committed(store.backend, months={5: 1})
            await job.commit([report])
    assert store.decisions[job.instant]["kind"] == "rollback"
    assert len(store.committed_files) == 3
    store.check_at_rest()


async def test_it_learns_so_at_its_next_beat_and_the_block_ends(store):
    with pytest.raises(RolledBack, match="write again"):  # noqa: PT012
        async with begin(store.backend) as job:
            await write_rows(job, store.backend)
            store.clock.pass_lease()
            await table(store.backend).rollback()
            begun = anyio.current_time()
            await anyio.sleep_forever()
    assert anyio.current_time() - begun <= LEASE.heartbeat_interval_s
    store.check_only_commits_are_left()


async def test_an_error_that_follows_from_it_does_not_hide_it(unstaged):
    """The engine that runs the tasks fails in its own way when they are refused."""
    with pytest.raises(RolledBack) as caught:  # noqa: PT012
        async with begin(unstaged.backend):
            unstaged.clock.pass_lease()
            await table(unstaged.backend).rollback()
            try:
                await anyio.sleep_forever()
            finally:
                raise ZeroDivisionError("the tasks failed")
    assert isinstance(caught.value.__cause__, ZeroDivisionError)


async def test_while_beats_are_missed_every_ack_asks_the_log_first(unstaged):
    with pytest.raises(RolledBack):  # noqa: PT012
        async with begin(unstaged.faulty, markers=MarkerSettings()) as job:
            await write_rows(job, unstaged.faulty)
            unstaged.faulty.add(lost_request("put", "*/beat/*"))
            await anyio.sleep(LEASE.expiry_s / 2 + LEASE.heartbeat_interval_s)
            await mark(job, unstaged.faulty, [f"month=3/{name_of(job)}"])  # nobody has ended it: acked
            unstaged.clock.pass_lease()
            await table(unstaged.backend).rollback()
            await mark(job, unstaged.faulty, [f"month=4/{name_of(job)}"])
    unstaged.check_only_commits_are_left()


async def write_until_death(job, storage: FaultyBackend, *, death_s: float) -> list[str]:
    """Mark and publish a file each second, as tasks do; then the process dies. Returns what it had published."""
    landed = []
    attempt = 0
    while anyio.current_time() < death_s:
        path = f"month=1/{name_of(job, attempt=attempt)}"
        try:
            await mark(job, storage, [path])
            publish(job.ticket, storage, path, flights({1: 1}))
            landed.append(path)
        except (NotFound, Sealed):
            pass
        attempt += 1
        await anyio.sleep(1)
    die(storage)
    return landed


async def test_a_writer_that_beats_again_while_it_is_being_rolled_back_leaves_nothing(store):
    """Its beat was found too old, then it beat, and only then came the rollback entry: for half a lease it would ack
    without reading the log. Whoever rolls back outwaits that before it reads the markers."""
    store.backend._now = lambda: 1e6 + anyio.current_time()
    ended = []

    async def rescue() -> None:
        await anyio.sleep(134)
        # The log is read slowly once the beats were seen: meanwhile the writer beats.
        ended.extend(await table(FaultyBackend(store.backend, slow("get", 8, "*/log/*", nth=1))).rollback())

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(rescue)
        async with begin(store.faulty, markers=MarkerSettings()) as job:
            store.faulty.add(lost_request("put", "*/beat/*"))
            await anyio.sleep(131)
            store.faulty.heal()  # the next beat comes at 140 s, the one after would tell
            landed = await write_until_death(job, store.faulty, death_s=149)
    assert len(landed) > 5
    assert [each.outcome for each in ended] == ["rolled back"]
    store.check_only_committed_files()
    await table(store.backend).clean()  # markers that came too late, for nothing
    store.check_no_bookkeeping()


async def test_a_rescuer_outwaits_a_living_writer_although_the_store_stamps_whole_seconds(unstaged):
    """As S3 does: the writer's last heartbeat seems to be older than it is, by up to a second."""
    store = unstaged
    store.backend._now = lambda: float(int(1e6 + anyio.current_time()))

    async def end(instant: str) -> None:
        await anyio.sleep(29.2)
        await table(store.backend).rollback(instant)

    await anyio.sleep(1 - anyio.current_time() % 1 - 0.1)
    async with anyio.create_task_group() as tasks, begin(store.faulty, markers=MarkerSettings()) as job:
        tasks.start_soon(end, job.instant)
        store.faulty.add(lost_request("put", "*/beat/*"))
        await anyio.sleep(0.5)
        await write_until_death(job, store.faulty, death_s=anyio.current_time() + LEASE.expiry_s / 2)
    store.check_only_committed_files()


@kinds
async def test_a_living_writer_can_be_ended_by_name_and_leaves_nothing(store, kind):
    """It dies before its next beat, by which it would have learned and tidied up itself."""
    store.backend._now = lambda: 1e6 + anyio.current_time()
    ended = []

    async def end(instant: str) -> None:
        await anyio.sleep(5.5)
        ended.extend(await table(store.backend).rollback(instant))

    async with anyio.create_task_group() as tasks, begin(store.faulty, markers=MarkerSettings(kind=kind)) as job:
        tasks.start_soon(end, job.instant)
        landed = await write_until_death(job, store.faulty, death_s=9)
    assert len(landed) >= 5
    assert [each.outcome for each in ended] == ["rolled back"]
    store.check_only_committed_files()
    await anyio.sleep(200)
    await table(store.backend).clean()
    store.check_only_commits_are_left()


async def test_a_writer_that_is_ended_by_name_before_its_staging_is_open_starts_nothing(staged, monkeypatch):
    open_staging = staged.backend.open_staging

    async def ended_before(directory):
        monkeypatch.undo()
        await table(staged.backend).rollback(instant=directory.split("/")[2])
        await open_staging(directory)

    monkeypatch.setattr(staged.backend, "open_staging", ended_before)
    with pytest.raises(RolledBack, match="was rolled back at position 1"):
        async with begin(staged.backend):
            raise AssertionError("it has started")
    staged.check_no_bookkeeping()


async def test_what_is_named_after_no_instant_never_comes_into_the_log(unstaged):
    await committed(unstaged.backend)
    await unstaged.backend.put(heartbeat_path("notes"), b"")
    await unstaged.backend.put(".hoodie/.temp/zz/MARKERS.type", b"DIRECT")
    unstaged.clock.pass_lease()
    await table(unstaged.backend).clean()
    assert len(unstaged.decisions) == 1
    unstaged.check_at_rest()


@kinds
async def test_with_staging_a_task_that_goes_on_can_publish_nothing(staged, kind):
    async with begin(staged.backend, markers=MarkerSettings(kind=kind)) as job:
        zombie = f"month=1/{name_of(job, attempt=7)}"
        await mark(job, staged.backend, [zombie])
        begun = staged.backend.new_file(zombie, staging=job.ticket.staging)
        await job.commit([await write_rows(job, staged.backend)])
        with pytest.raises(NotFound):
            begun.publish()
        with pytest.raises(NotFound):
            staged.backend.new_file(zombie, staging=job.ticket.staging)
    with pytest.raises(NotFound):
        begun.publish()
    staged.check_at_rest()


@kinds
@pytest.mark.parametrize("commits", [True, False], ids=["commit", "rollback"])
async def test_without_staging_the_name_of_a_lost_attempt_is_fenced(unstaged, kind, commits):
    async with begin(unstaged.backend, markers=MarkerSettings(kind=kind)) as job:
        zombie = f"month=1/{name_of(job, attempt=7)}"
        await mark(job, unstaged.backend, [zombie])
        report = await write_rows(job, unstaged.backend)
        if commits:
            result = await job.commit([report])
            assert result.fences == 1
    assert zombie in unstaged.fences
    if commits:
        assert unstaged.decisions[job.instant]["fenced"] == [zombie]
    with pytest.raises(FileExistsError):
        publish(job.ticket, unstaged.backend, zombie, flights({1: 1}))
    unstaged.check_only_commits_are_left()


@kinds
async def test_markers_asked_after_the_seal_are_refused_and_leave_nothing(kind, store):
    async with begin(store.backend, markers=MarkerSettings(kind=kind)) as job:
        await job.commit([await write_rows(job, store.backend)])
        with pytest.raises(Sealed):
            await mark(job, store.backend, [f"month=1/{name_of(job, attempt=8)}"])
    with pytest.raises(Sealed):
        await mark(job, store.backend, [f"month=1/{name_of(job, attempt=9)}"])
    store.check_at_rest()


async def test_a_direct_marker_that_lands_while_the_job_seals_is_either_seen_or_refused():
    """Whatever the delays of its put and of its look for the seal, no row outlives the commit."""
    for put_s in range(6):
        for look_s in range(6):
            store = Store(has_staging=False)
            task = FaultyBackend(store.backend, slow("put_new", put_s, "*.marker.*"), slow("get", look_s, "*/seal/*"))
            job_side = FaultyBackend(store.backend, slow("put", 2, "*/seal/*"), slow("list", 2, ".hoodie/.temp/*"))

            async def zombie(job, storage) -> None:
                path = f"month=1/{name_of(job, attempt=7)}"
                try:
                    await mark(job, storage, [path])
                    publish(job.ticket, storage, path, flights({1: 1}))
                except (Sealed, FileExistsError):
                    pass

            async with anyio.create_task_group() as tasks, begin(job_side) as job:
                tasks.start_soon(zombie, job, task)
                await job.commit([])
            store.check_at_rest()
