import pytest

from tallymark.backends import AlreadyExists, NotFound, StorageOptions, open_backend
from tallymark.bench.loopback import server
from tallymark.bench.ours import Ours
from tallymark.bench.places.objects import objects
from tests.support.loops import on_both_loops


@pytest.fixture(scope="module")
def endpoint():
    with server() as url:
        yield url


def options(endpoint):
    return StorageOptions(
        endpoint=endpoint, region="us-east-1", credentials="tallymark.bench.loopback.server:credentials"
    )


@pytest.fixture
def backend(endpoint, request):
    return open_backend(f"s3://bench/{request.node.name}", options=options(endpoint))


@on_both_loops
async def test_what_was_put_is_read_listed_and_deleted(backend):
    await backend.put("a/1 & '2'.txt", b"one")
    await backend.put("a/1 & '2'.txt", b"two")
    assert await backend.get("a/1 & '2'.txt") == b"two"
    assert [(entry.path, entry.size) async for entry in backend.list("a")] == [("a/1 & '2'.txt", 3)]
    await backend.delete(["a/1 & '2'.txt"])
    with pytest.raises(NotFound):
        await backend.get("a/1 & '2'.txt")


@on_both_loops
async def test_a_name_is_given_once(backend):
    await backend.put_new("log/1", b"mine")
    with pytest.raises(AlreadyExists):
        await backend.put_new("log/1", b"mine")


@on_both_loops
async def test_listing_has_as_many_pages_as_it_takes(backend):
    ours = Ours(backend)
    names = [f"many/{number:05}" for number in range(1001)]
    for name in names:
        await ours.put(name, b"")
    assert [entry.path async for entry in backend.list("many")] == names
    await ours.delete(names)
    assert await ours.list("many") == 0


@on_both_loops
async def test_a_large_file_is_counted_and_its_name_is_taken(backend):
    ours = Ours(backend)
    ours.data_file("data/large", [bytes(400_000)] * 5)
    assert [(entry.path, entry.size) async for entry in backend.list("data")] == [("data/large", 2_000_000)]
    with pytest.raises(AlreadyExists):
        ours.data_file("data/large", [b"other"])


@on_both_loops
async def test_a_measured_prefix_goes_with_all_that_is_in_it_and_nothing_else(backend, endpoint):
    await backend.put("mine", b"stays")
    with pytest.raises(KeyError, match="interrupted"):
        await interrupted(objects(backend.url, options(endpoint), title="S3"))
    assert [entry.path async for entry in backend.list("")] == ["mine"]


async def interrupted(opening):
    async with opening as found:
        await found.ours.put("x/1", b"")
        found.peer.put_new("x/2", b"")
        assert await found.ours.list("x") == found.peer.list("x") == 2
        raise KeyError("interrupted")
