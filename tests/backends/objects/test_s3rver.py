"""A server that ignores preconditions: the doctor finds it unfit, and no table is made on it."""

import pyarrow as pa
import pytest

from tallymark import open_table
from tallymark.engine.errors import UnsupportedTable
from tests.cli.scene import run
from tests.support.loops import on_both_loops
from tests.support.services.s3rver import BUCKET, KEYS, S3rver, s3rver

pytestmark = pytest.mark.slow

URL = f"s3://{BUCKET}/flights"


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with s3rver(tmp_path_factory.mktemp("s3rver")) as running, pytest.MonkeyPatch.context() as patch:
        for name, value in KEYS.items():
            patch.setenv(name, value)
        yield running


@on_both_loops
async def test_no_table_is_made_there_and_nothing_is_left(server: S3rver):
    table = open_table(URL, options=server.options)
    with pytest.raises(UnsupportedTable, match=f"^{URL}: .* ignores put-if-absent .*'tallymark doctor {URL}'"):
        async with table.write(schema=pa.schema([("flight", pa.int64())]), mode="append"):
            raise AssertionError
    assert server.keys() == set()


def test_the_doctor_finds_it_unfit_says_why_and_leaves_nothing(server: S3rver):
    where = [f"--storage={name}={value}" for name, value in (("endpoint", server.endpoint), ("region", "us-east-1"))]
    result = run("doctor", URL, *where)
    assert result.exit_code == 1
    assert "of 32 writers that created one name at once 32 succeeded" in result.stdout
    assert f"{URL} is not fit: creates a name once: a name was created twice" in result.stdout
    assert server.keys() == set()
