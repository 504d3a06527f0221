"""S3 keeps the contract on Ceph's gateway too: a server that nobody here wrote, where it is installed."""

from collections.abc import Iterator

import pytest

from tallymark.backends import NotPermitted, open_backend
from tallymark.backends.testing import ObjectStoreConformance
from tests.backends.objects.s3_peek import S3Peek
from tests.support.loops import on_both_loops
from tests.support.services import rgw
from tests.support.services.s3_server import ENVIRONMENT

pytestmark = pytest.mark.skipif(not rgw.is_here(), reason=rgw.MISSING)


@pytest.fixture(scope="module")
def gateway(tmp_path_factory) -> Iterator[rgw.Rgw]:
    folder = tmp_path_factory.mktemp("rgw")
    with rgw.rgw_server(folder) as server, pytest.MonkeyPatch.context() as patch:
        for name, value in ENVIRONMENT.items():
            patch.setenv(name, value)
        yield server
        server.client.close()


@pytest.fixture
def bucket(gateway: rgw.Rgw) -> Iterator[str]:
    name = gateway.bucket()
    yield name
    gateway.drop(name)


class TestRgw(ObjectStoreConformance):
    """At full size but for the listing, which passed with 20,000 objects, too, in half a minute more."""

    loops = ("trio",)
    listed_object_count = 5_000

    @pytest.fixture
    def peek(self, gateway, bucket):
        return S3Peek(gateway, bucket)


@on_both_loops
async def test_a_wrong_secret_is_not_permitted(gateway, bucket, monkeypatch):
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wrong")
    backend = open_backend(f"s3://{bucket}", options=gateway.options)
    with pytest.raises(NotPermitted) as caught:
        await backend.put_new("a", b"")
    assert "wrong" not in str(caught.value)


@on_both_loops
async def test_a_bucket_that_is_not_there_is_not_permitted(gateway, monkeypatch):
    backend = open_backend("s3://no-such-bucket", options=gateway.options)
    for ask in (lambda: backend.put("a", b""), lambda: backend.put_new("a", b""), lambda: backend.get("a")):
        with pytest.raises(NotPermitted, match="no-such-bucket"):
            await ask()
