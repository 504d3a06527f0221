"""What a stranger says to a client that takes it for its service."""

from tallymark.engine.errors import NotAuthenticated, ServiceUnavailable
from tallymark.engine.rpc.messages import unpack
from tests.fuzz.targets.server_handshake import client, server


def seeds() -> list[bytes]:
    asking, answering = client(), server()
    challenge = answering.receive(asking.hello())
    proof = asking.receive(challenge)
    assert proof
    welcome = answering.receive(proof)
    return [b"\0" + challenge, b"\1" + welcome]


def target(data: bytes) -> bool:
    """The first byte says where in the handshake the rest is said."""
    said, asking = data[1:], client()
    challenge = server().receive(asking.hello())
    if data[:1] == b"\1":
        asking.receive(challenge)
    try:
        asking.receive(said)
    except (NotAuthenticated, ServiceUnavailable):
        return False
    assert asking.session is None or unpack(said) == WELCOME, "msgpack knows more than one way to write a number"
    return True


WELCOME = unpack(seeds()[1][1:])
