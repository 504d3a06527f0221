from tests.engine.jobs.scene import LEASE, begin, committed, table, write_rows
from tests.support.faulty import FaultyBackend, refused
from tests.support.loops import on_both_loops


@on_both_loops
async def test_status_of_a_table_at_rest_is_its_snapshot_and_nobody_at_work(store):
    await committed(store.backend)
    status = await table(store.backend).status()
    snapshot, sizes = await table(store.backend).snapshot(), status.sizes
    assert (sizes.position, sizes.files, sizes.rows, sizes.bytes) == (
        snapshot.position,
        len(snapshot.files),
        snapshot.rows,
        snapshot.bytes,
    )
    assert (status.schema, status.partition_by) == (snapshot.schema, snapshot.partition_by)
    assert (status.readers, status.open_instants) == ("directory", ())


@on_both_loops
async def test_writer_is_alive_until_its_last_beat_is_older_than_the_lease_and_unknown_where_we_may_only_read(staged):
    async with begin(staged.backend) as job:
        staged.clock.now += LEASE.expiry_s
        (found,) = (await table(staged.backend).status()).open_instants
        assert (found.reservation.instant, found.beat_age_s, found.writer) == (job.instant, LEASE.expiry_s, "alive")
        staged.clock.now += 1
        (found,) = (await table(staged.backend).status()).open_instants
        assert (found.beat_age_s, found.writer, found.decision) == (LEASE.expiry_s + 1, "dead", None)
        (found,) = (await table(FaultyBackend(staged.backend, refused("put"))).status()).open_instants
        assert (found.beat_age_s, found.writer) == (None, "unknown")


@on_both_loops
async def test_instant_that_was_committed_and_not_finished_carries_its_decision(staged):
    async with begin(staged.backend) as job:
        await job.commit([await write_rows(job, staged.backend)])
        (found,) = (await table(staged.backend).status()).open_instants
        assert (found.reservation.instant, found.decision) == (job.instant, "commit")


@on_both_loops
async def test_a_page_of_the_timeline_is_the_same_part_of_it_from_a_checkpoint_on_too(store):
    for _ in range(4):
        await committed(store.backend)
    everything = await table(store.backend).timeline()
    await table(store.backend).checkpoint()
    await committed(store.backend)
    everything += (await table(store.backend).timeline())[-1:]
    reader = table(store.backend)
    assert [position for position, _ in everything] == [1, 2, 3, 4, 5]
    assert await reader.timeline(limit=2) == everything[-2:]
    assert await reader.timeline(after=1, limit=2) == everything[1:3]
    assert await reader.timeline(after=3) == everything[3:]
    assert await reader.timeline(after=5) == []
