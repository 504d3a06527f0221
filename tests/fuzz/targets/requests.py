"""What tasks ask of a service."""

from tallymark.engine.errors import InvalidRequest
from tallymark.engine.rpc.messages import Commit, CreateMarkers, LookUp, decode_request, encode_request
from tests.fuzz.round_trip import comes_back

PATHS = ("year=2013/month=1/a-0_0-1-2_20260102030405006.parquet", "b.parquet", "stad=Malmö/c.parquet")


def seeds() -> list[bytes]:
    return [
        encode_request(request)
        for request in (
            CreateMarkers(1, PATHS, "CREATE"),
            CreateMarkers(2**63 - 1, (), "MERGE"),
            LookUp(7, 2**40, "f" * 64, PATHS),
            Commit(8, 3, "f" * 64, b"entry", (0, 2**40)),
        )
    ]


def target(data: bytes) -> bool:
    return comes_back(data, decode_request, encode_request, refused=InvalidRequest) is not None
