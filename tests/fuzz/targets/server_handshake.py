"""What a stranger says to a service before it has shown who it is, and on somebody else's session."""

from tallymark.engine.errors import NotAuthenticated
from tallymark.engine.rpc.handshake import ClientHandshake, ServerHandshake, Session, job_key
from tallymark.engine.rpc.messages import unpack

SECRET = bytes(range(32))
INSTANT = "20260102030405006"


def server() -> ServerHandshake:
    return ServerHandshake(SECRET, nonce=b"s" * 32, frame_bytes=5000)


def client() -> ClientHandshake:
    return ClientHandshake(job_key(SECRET, INSTANT), INSTANT, nonce=b"c" * 32)


def seeds() -> list[bytes]:
    hello = client().hello()
    challenge = server().receive(hello)
    asking = client()
    asking.hello()
    proof = asking.receive(challenge)
    assert proof
    return [b"\0" + hello, b"\1" + proof, b"\2" + sessions()[0].protect(b"a request")]


def sessions() -> tuple[Session, Session]:
    """Both sides', of the same handshake each time."""
    asking, answering = client(), server()
    proof = asking.receive(answering.receive(asking.hello()))
    assert proof
    asking.receive(answering.receive(proof))
    assert asking.session
    assert answering.session
    return asking.session, answering.session


def target(data: bytes) -> bool:
    """The first byte says where in the handshake the rest is said."""
    said, answering = data[1:], server()
    match data[:1]:
        case b"\1":
            answering.receive(client().hello())
        case b"\2":
            return is_verified(said)
    try:
        answering.receive(said)
    except NotAuthenticated:
        return False
    assert answering.session is None or unpack(said) == PROOF, "msgpack knows more than one way to write a number"
    return True


def is_verified(frame: bytes) -> bool:
    """No frame but the one that the peer has protected is taken for its next."""
    _, answering = sessions()
    try:
        answering.verify(frame)
    except NotAuthenticated:
        return False
    assert frame == FRAME
    return True


PROOF = unpack(seeds()[1][1:])
FRAME = seeds()[2][1:]
