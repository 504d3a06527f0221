"""Messages that released clients and servers have exchanged: each later release takes them."""

import pytest

from tallymark.engine.rpc import handshake
from tallymark.engine.rpc.messages import CreateMarkers, LookUp, Request, decode_request, encode_request
from tests.engine.rpc.test_handshake import client, server

MARKER = "month=1/a_0-1-2_20260102030405006.parquet"


REQUEST_0_1 = (
    "0107a6435245415445d9296d6f6e74683d312f615f302d312d325f32303236303130323033303430353030362e7061727175"
    "6574406cd77473efaaf6d46ac97905a25943"
)


@pytest.mark.parametrize(
    ("release", "hello", "challenge", "proof", "welcome", "requests"),
    [
        pytest.param(
            "0.1",
            "10a974616c6c796d61726b02a3302e31b13230323630313032303330343035303036c420" + "63" * 32,
            "1102a3302e31c420" + "73" * 32,
            "12c420ce6525d99484f9fb3290d9d1f3ee5317b81d63da75c0b14f12e6dcbc6902cf7b",
            "13cd1388c420b48e12b40de368e981447da419f18b22f8930ccf619e758872438f9cb027f5bd",
            (
                REQUEST_0_1,
                "040803d940" + "66" * 64 + "a76d6f6e74683d31dae5468031f54eb0e0da789078dbd4c0",
            ),
            id="0.1, protocol 2",
        )
    ],
)
def test_what_a_release_has_sent_is_taken_and_answered_as_then(
    monkeypatch, release, hello, challenge, proof, welcome, requests
):
    assert handshake.PROTOCOL in handshake.PROTOCOLS
    monkeypatch.setattr(handshake, "RELEASE", release)
    one, other = client(), server()
    assert one.hello().hex() == hello
    assert other.receive(bytes.fromhex(hello)).hex() == challenge
    assert (one.receive(bytes.fromhex(challenge)) or b"").hex() == proof
    assert (other.receive(bytes.fromhex(proof)) or b"").hex() == welcome
    one.receive(bytes.fromhex(welcome))
    assert one.session
    assert other.session
    wanted: tuple[Request, ...] = (CreateMarkers(7, (MARKER,), "CREATE"), LookUp(8, 3, "f" * 64, ("month=1",)))
    for request, sent in zip(wanted, requests, strict=True):
        assert one.session.protect(encode_request(request)).hex() == sent
        assert decode_request(bytes(other.session.verify(bytes.fromhex(sent)))) == request
