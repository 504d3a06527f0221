"""GCS keeps the contract: on our own model of its XML API, which plain HTTP looks into."""

import io
import time
from collections.abc import Awaitable, Callable, Iterator
from functools import partial

import anyio
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tallymark
from tallymark.backends import AlreadyExists, InvalidPath, NotPermitted, StorageOptions, Throttled, open_backend
from tallymark.backends.gcs import GcsBackend
from tallymark.backends.meter import RequestMeter
from tallymark.backends.retry import Retries, RetrySettings
from tallymark.backends.retrying import RetryingBackend
from tallymark.backends.testing import STAGING, ObjectStoreConformance, listed
from tallymark.engine.jobs.request import Mode
from tests.backends.objects.gcs_peek import GcsPeek
from tests.support.loops import on_both_loops
from tests.support.services.fault_plan import Fault, Kind
from tests.support.services.fault_proxy import FaultProxy, fault_proxy
from tests.support.services.gcs_facade import TOKEN, GcsFacade
from tests.support.services.gcs_model import EXPIRED, READ_ONLY
from tests.table_invariants import committed_files, table_is_at_rest

PREFIX = "data lake/flüge"

LANDED = (Fault(Kind.STATUS_AFTER, 500), Fault(Kind.RESET_AFTER), Fault(Kind.TORN))
LOST = (Fault(Kind.STATUS_BEFORE, 503), Fault(Kind.STATUS_BEFORE, 409), Fault(Kind.RESET_BEFORE))


@pytest.fixture
def bucket(gcs: GcsFacade) -> Iterator[str]:
    name = gcs.bucket()
    yield name
    gcs.drop(name)


@pytest.fixture
def proxy(gcs: GcsFacade) -> Iterator[FaultProxy]:
    with fault_proxy(gcs.endpoint) as proxy:
        yield proxy


class TestGcs(ObjectStoreConformance):
    """Fewer objects than elsewhere: each is deleted by a request of its own."""

    loops = ("trio",)
    listed_object_count = 5_000

    @pytest.fixture
    def peek(self, gcs, bucket):
        return GcsPeek(gcs, bucket)

    @pytest.fixture(autouse=True)
    def _options(self, gcs):
        self.options = gcs.options

    def reopened(self, backend):
        return open_backend(backend.url, options=self.options)


@on_both_loops
async def test_what_lies_beside_a_prefix_is_neither_seen_nor_touched(gcs, bucket):
    inside, beside = GcsPeek(gcs, bucket, PREFIX), GcsPeek(gcs, bucket, PREFIX + "2")
    for peek in (inside, beside):
        for path in ("a", "b/c"):
            await peek.backend.put_new(path, peek.backend.url.encode())
    await inside.backend.delete(["a"])
    assert await listed(inside.backend) == ["b/c"]
    assert await listed(beside.backend) == ["a", "b/c"]
    assert gcs.keys(bucket) == [f"{PREFIX}/b/c", f"{PREFIX}2/a", f"{PREFIX}2/b/c"]
    assert inside.backend.url == f"gs://{bucket}/{PREFIX}"


@pytest.mark.parametrize("fault", LANDED + LOST, ids=lambda fault: fault.name)
@on_both_loops
async def test_a_put_if_absent_whose_answer_is_lost_is_found_out_and_done_once(gcs, bucket, proxy, fault):
    backend = open_backend(f"gs://{bucket}/t", options=gcs.behind(proxy.endpoint))
    scripted = proxy.script(fault, method="PUT")
    await backend.put_new("a", b"mine")
    assert (scripted.happened, gcs.objects(bucket)) == (1, {"t/a": b"mine"})
    assert proxy.requests == ({"PUT": 1, "HEAD": 1} if fault in LANDED else {"PUT": 2, "HEAD": 1})


@pytest.mark.parametrize("fault", LANDED + LOST, ids=lambda fault: fault.name)
@on_both_loops
async def test_another_with_equal_bytes_is_told_from_oneself_after_a_lost_answer(gcs, bucket, proxy, fault):
    await open_backend(f"gs://{bucket}/t", options=gcs.options).put_new("a", b"equal")
    proxy.script(fault, method="PUT")
    with pytest.raises(AlreadyExists):
        await open_backend(f"gs://{bucket}/t", options=gcs.behind(proxy.endpoint)).put_new("a", b"equal")
    assert gcs.objects(bucket) == {"t/a": b"equal"}


@on_both_loops
async def test_a_data_file_is_sent_once_under_its_name_whatever_the_answer(gcs, bucket, proxy):
    backend = open_backend(f"gs://{bucket}", options=gcs.behind(proxy.endpoint))
    for number, fault in enumerate(LANDED + LOST):
        scripted = proxy.script(fault, method="PUT", path=f"{number}.parquet")
        file = backend.new_file(f"{number}.parquet", staging=STAGING)
        file.sink.write(b"rows")
        if fault in LANDED:
            file.publish()
        else:
            with pytest.raises(tallymark.Unavailable):
                file.publish()
            file = file.again(f"{number}-again.parquet")
            file.publish()
        file.abandon()
        assert scripted.happened == 1
    landed = {f"{number}.parquet": b"rows" for number in range(len(LANDED))}
    again = {f"{number}-again.parquet": b"rows" for number in range(len(LANDED), len(LANDED + LOST))}
    assert gcs.objects(bucket) == landed | again
    assert proxy.requests["PUT"] == len(LANDED) + 2 * len(LOST)


@on_both_loops
async def test_a_delete_of_many_repeats_the_requests_that_were_lost_and_no_others(gcs, bucket, proxy):
    paths = [f"m/{number:03}" for number in range(100)]
    for path in paths:
        await open_backend(f"gs://{bucket}", options=gcs.options).put(path, b"")
    lost = [proxy.script(Fault(Kind.RESET_BEFORE), method="DELETE", path=f"m/{number:02}0$") for number in range(10)]
    proxy.script(Fault(Kind.RESET_AFTER), method="DELETE", path="m/011$")
    await open_backend(f"gs://{bucket}", options=gcs.behind(proxy.endpoint)).delete(paths)
    assert gcs.keys(bucket) == []
    assert [fault.happened for fault in lost] == [1] * 10
    assert proxy.requests == {"DELETE": 111}


@on_both_loops
async def test_more_than_one_write_a_second_of_an_object_is_throttled_and_waits_for_its_second(gcs):
    bucket = gcs.bucket(one_write_a_second=True)
    meter = RequestMeter()
    retries = Retries(meter=meter)
    backend = RetryingBackend(GcsBackend(bucket, "", gcs.options, retries, meter), retries)
    began = time.monotonic()
    count = 0
    # On a busy machine the second put may itself come a second after the first: then one more.
    while count < 2 or (count < 10 and not meter.statistics().of("put").outcomes["throttled"]):
        count += 1
        await backend.put("a", b"%d" % count)
    assert time.monotonic() - began >= 1
    assert gcs.objects(bucket) == {"a": b"%d" % count}
    assert meter.statistics().of("put").outcomes["throttled"] >= 1
    gcs.drop(bucket)


@on_both_loops
async def test_a_put_if_absent_that_is_throttled_stays_throttled_when_its_repeats_are_used_up(gcs, bucket, proxy):
    proxy.script(Fault(Kind.STATUS_BEFORE, 429), method="PUT", times=9)
    retries = Retries(RetrySettings(attempt_count=2, throttled_pause_s=0.01))
    backend = GcsBackend(bucket, "", gcs.behind(proxy.endpoint), retries, RequestMeter())
    with pytest.raises(Throttled, match="tried 2 times"):
        await backend.put_new("a", b"")
    assert gcs.keys(bucket) == []


@pytest.mark.parametrize(
    ("token", "verbs", "remedy"),
    [
        (EXPIRED, ("get", "put", "put_new", "list", "delete"), "check which credentials are used"),
        (READ_ONLY, ("put", "put_new", "delete"), "grant storage.objects"),
    ],
)
@on_both_loops
async def test_who_may_not_is_told_at_once_what_to_do_and_no_secret(gcs, bucket, monkeypatch, token, verbs, remedy):
    await open_backend(f"gs://{bucket}", options=gcs.options).put("a", b"")
    monkeypatch.setenv(TOKEN, token)
    backend = open_backend(f"gs://{bucket}", options=gcs.options)
    asks: dict[str, Callable[[], Awaitable[object]]] = {
        "get": partial(backend.get, "a"),
        "put": partial(backend.put, "a", b"1"),
        "put_new": partial(backend.put_new, "b", b"1"),
        "list": partial(listed, backend),
        "delete": partial(backend.delete, ["a"]),
    }
    for verb in verbs:
        with anyio.fail_after(15), pytest.raises(NotPermitted, match=remedy) as caught:
            await asks[verb]()
        assert f"gs://{bucket}" in str(caught.value)
        assert token not in str(caught.value)
    assert gcs.objects(bucket) == {"a": b""}


@on_both_loops
async def test_a_bucket_that_is_not_there_is_not_permitted_and_named(gcs):
    backend = open_backend("gs://never-made/t", options=gcs.options)
    asks: list[Callable[[], Awaitable[object]]] = [
        partial(backend.put, "a", b""),
        partial(backend.put_new, "a", b""),
        partial(listed, backend),
    ]
    for ask in asks:
        with anyio.fail_after(15), pytest.raises(NotPermitted, match="gs://never-made"):
            await ask()


@on_both_loops
async def test_a_key_file_that_is_none_is_refused_without_a_word_of_it(tmp_path, monkeypatch):
    file = tmp_path / "key.json"
    file.write_text(
        '{"type": "service_account", "private_key": "CANARY", "client_email": 1, "private_key_id": "CANARY"}'
    )
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(file))
    with pytest.raises(NotPermitted, match="GOOGLE_APPLICATION_CREDENTIALS") as caught:
        await open_backend("gs://bucket").get("a")
    assert "CANARY" not in repr(caught.value)
    assert caught.value.__cause__ is None


@on_both_loops
async def test_a_provider_that_fails_is_named_and_not_quoted(gcs, bucket):
    options = StorageOptions(endpoint=gcs.endpoint, credentials="tests.backends.objects.test_gcs:failing_provider")
    with anyio.fail_after(15), pytest.raises(NotPermitted, match="failing_provider") as caught:
        await open_backend(f"gs://{bucket}", options=options).get("a")
    assert "CANARY" not in repr(caught.value)


def failing_provider() -> None:
    raise ValueError("the CANARY has no key")


@pytest.mark.parametrize(
    ("url", "options", "rule"),
    [
        *(
            ("gs://bucket/t", option, "is S3's")
            for option in ({"region": "eu"}, {"profile": "mine"}, {"path_style": True})
        ),
        ("gcs://bucket/t", {}, "use 'gs://bucket/t'"),
        *((url, {}, ".") for url in ("gs:", "gs://", "gs:///t", "gs://user:key@bucket/t")),
    ],
)
def test_a_url_or_an_option_that_gcs_has_not_is_refused_with_the_rule(url, options, rule):
    with pytest.raises(InvalidPath, match=rule) as caught:
        open_backend(url, options=StorageOptions(**options))
    assert "key@" not in str(caught.value)


def test_opening_asks_nothing_of_the_store(proxy, gcs):
    backend = open_backend("gs://never-made/t", options=gcs.behind(proxy.endpoint))
    assert "gs://never-made/t" in repr(backend)
    assert proxy.requests == {}


@on_both_loops
async def test_a_table_is_written_overwritten_and_read_back_around_the_library_without_one_write_too_many(gcs):
    bucket = gcs.bucket(one_write_a_second=True)
    rows = pa.table({"month": [1, 1, 2, 3], "flight": [10, 11, 20, 30]})
    backend = open_backend(f"gs://{bucket}/flights", options=gcs.options)
    table = tallymark.open_table(backend.url, backend=backend)
    writes: list[tuple[Mode, pa.Table]] = [("append", rows), ("overwrite", rows.slice(2))]
    for mode, written in writes:
        async with table.write(schema=rows.schema, mode=mode, partition_by=["month"]) as job:
            task = partial(tallymark.write_task, job.ticket, written, task=0, backend=backend)
            await job.commit([await anyio.to_thread.run_sync(task)])
    stored = {key.removeprefix("flights/"): data for key, data in gcs.objects(bucket).items()}
    table_is_at_rest(stored)
    assert _flights(stored) == [20, 30]
    assert len((await table.snapshot()).files) == 2
    assert isinstance(backend, RetryingBackend)
    counts = backend.statistics()
    assert counts is not None
    assert set(counts.of("put").outcomes) == {"ok", "exists"}, "some object was written twice within a second"
    gcs.drop(bucket)


def _flights(stored: dict[str, bytes]) -> list[object]:
    """Read by pyarrow from what plain HTTP gave: its own GCS client speaks the JSON API, which the model has not."""
    paths = committed_files(stored)
    read = [pq.read_table(io.BytesIO(stored[path])) for path in paths]
    return pa.concat_tables(read)["flight"].sort().to_pylist()
