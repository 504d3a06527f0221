import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tallymark.engine.errors import NotAuthenticated, Sealed, ServiceUnavailable, TallymarkError
from tallymark.engine.rpc import handshake, messages
from tallymark.engine.rpc.handshake import ClientHandshake, ServerHandshake, Session, job_key

SECRET = bytes(range(32))
INSTANT = "20260102030405006"


def server(secret: bytes = SECRET, nonce: bytes = b"s" * 32) -> ServerHandshake:
    return ServerHandshake(secret, nonce=nonce, frame_bytes=5000)


def client(key: bytes | None = None, instant: str = INSTANT, nonce: bytes = b"c" * 32) -> ClientHandshake:
    return ClientHandshake(key or job_key(SECRET, instant), instant, nonce=nonce)


def greeted() -> ClientHandshake:
    """A client that waits for the challenge."""
    made = client()
    made.hello()
    return made


def shake(client: ClientHandshake, server: ServerHandshake, hello: bytes | None = None) -> list[bytes]:
    """Everything that was said until both have a session."""
    said = [hello or client.hello()]
    while client.session is None:
        said.append(server.receive(said[-1]))
        if reply := client.receive(said[-1]):
            said.append(reply)
    return said


def sessions(nonce: bytes = b"c" * 32) -> tuple[Session, Session]:
    a, b = client(nonce=nonce), server()
    shake(a, b)
    assert a.session
    assert b.session
    return a.session, b.session


def test_both_sides_that_hold_the_job_s_key_get_a_session_the_instant_and_the_limit() -> None:
    a, b = client(), server()
    said = shake(a, b)
    assert (b.job, a.frame_bytes, len(said)) == (INSTANT, 5000, 4)
    assert all(len(message) <= 256 for message in said), "the handshake's limit"
    assert not any(secret in b"".join(said) for secret in (SECRET, job_key(SECRET, INSTANT)))
    assert a.session
    assert b.session


@pytest.mark.parametrize(
    ("key", "secret"),
    [(job_key(SECRET, "20260102030405007"), SECRET), (None, b"x" * 32)],
    ids=["of another job", "of another driver"],
)
def test_another_key_is_refused(key: bytes | None, secret: bytes) -> None:
    b = server(secret)
    with pytest.raises(NotAuthenticated, match=f"{INSTANT}.*ticket"):
        shake(client(key), b)
    assert b.session is None


def test_a_server_that_does_not_know_the_key_is_refused_by_the_client() -> None:
    a, impostor = client(), server()
    challenge = impostor.receive(a.hello())
    a.receive(challenge)
    with pytest.raises(NotAuthenticated, match="does not know"):
        a.receive(messages.pack(19, 5000, b"p" * 32))
    assert a.session is None


def test_the_release_is_the_package_s() -> None:
    project = tomllib.loads((Path(__file__).parents[3] / "pyproject.toml").read_text())["project"]
    assert project["version"].rsplit(".", 1)[0] == handshake.RELEASE


def test_a_task_of_the_release_before_is_served_while_the_protocol_is_the_same(monkeypatch) -> None:
    a, b = client(), server()
    with monkeypatch.context() as before:
        before.setattr(handshake, "RELEASE", "0.0")
        hello = a.hello()
    shake(a, b, hello)
    assert a.session
    assert b.session


@pytest.mark.parametrize("release", ["0.7", handshake.RELEASE])
def test_a_task_of_another_protocol_is_refused_with_both_versions_and_the_remedy(release: str) -> None:
    hello = messages.pack(16, "tallymark", 9, release, "whatever", "that version", 1, b"says")
    with pytest.raises(NotAuthenticated) as caught:
        server().receive(hello)
    for words in (
        f"{release} (protocol 9)",
        f"{handshake.RELEASE} (protocol {handshake.PROTOCOL})",
        "install one release",
    ):
        assert words in str(caught.value)


def test_a_driver_of_another_version_is_refused_with_both_versions_and_the_remedy() -> None:
    with pytest.raises(NotAuthenticated, match=r"0\.1 \(protocol 2\), the driver 0\.7 \(protocol 9\); install"):
        greeted().receive(messages.pack(17, 9, "0.7", "whatever that version says"))


@given(st.integers(0, 3), st.data())
def test_a_handshake_with_any_altered_byte_gives_no_session_to_who_receives_it(which: int, data: st.DataObject) -> None:
    a, b = client(), server()
    message: bytes | None = a.hello()
    receivers: list[ServerHandshake | ClientHandshake] = [b, a, b, a]
    for number, receiver in enumerate(receivers):
        assert message
        if number == which:
            at = data.draw(st.integers(0, len(message) - 1))
            message = message[:at] + bytes([message[at] ^ data.draw(st.integers(1, 255))]) + message[at + 1 :]
        try:
            message = receiver.receive(message)
        except (NotAuthenticated, ServiceUnavailable):
            break
    assert a.session is None
    assert b.session is None or which == 3


def test_neither_a_recorded_proof_nor_the_server_s_own_challenge_is_a_proof() -> None:
    hello, _, recorded, _ = shake(client(), server())
    for is_own in (False, True):
        b = server(nonce=b"t" * 32)
        challenge = b.receive(hello)
        with pytest.raises(NotAuthenticated):
            b.receive(challenge if is_own else recorded)


VERSION = (handshake.PROTOCOL, handshake.RELEASE)


@pytest.mark.parametrize(
    ("receiver", "fields", "what"),
    [
        (server, (16, "tallymark", *VERSION, INSTANT, b"short"), "hello"),
        (server, (16, "tallymark", *VERSION, INSTANT), "hello"),
        (server, (16, "another", *VERSION, INSTANT, b"c" * 32), "hello"),
        (greeted, (17, *VERSION, b"short"), "challenge"),
        (greeted, (messages.REFUSAL, messages.WHOLE_CONNECTION, "Sealed"), "refusal"),
    ],
)
def test_a_first_word_of_another_shape_is_refused(
    receiver: Callable[[], ServerHandshake | ClientHandshake], fields: tuple[messages.Scalar, ...], what: str
) -> None:
    with pytest.raises(NotAuthenticated, match=f"no {what} of tallymark's protocol"):
        receiver().receive(messages.pack(*fields))
    with pytest.raises(NotAuthenticated, match="no message of tallymark's protocol"):
        receiver().receive(messages.pack(*fields)[:-1])


@pytest.mark.parametrize(("error", "raised"), [(NotAuthenticated, NotAuthenticated), (Sealed, ServiceUnavailable)])
def test_a_refusal_before_the_session_stops_the_client_if_it_is_about_its_call_else_it_may_try_again(
    error: type[TallymarkError], raised: type[TallymarkError]
) -> None:
    with pytest.raises(raised, match="no"):
        greeted().receive(messages.encode_answer(messages.Refusal(messages.WHOLE_CONNECTION, error("no"))))


@given(st.lists(st.tuples(st.booleans(), st.binary(max_size=50)), max_size=12))
def test_protected_frames_come_back_in_both_directions(frames: list[tuple[bool, bytes]]) -> None:
    a, b = sessions()
    for is_from_client, body in frames:
        sender, receiver = (a, b) if is_from_client else (b, a)
        assert receiver.verify(sender.protect(body)) == body


@given(st.binary(max_size=20), st.integers(1, 255))
def test_a_frame_that_was_altered_or_cut_anywhere_is_refused(body: bytes, change: int) -> None:
    frame = sessions()[0].protect(body)
    for at in range(len(frame)):
        for other in (frame[:at] + bytes([frame[at] ^ change]) + frame[at + 1 :], frame[:at]):
            with pytest.raises(NotAuthenticated):
                sessions()[1].verify(other)


@pytest.mark.parametrize("place", ["repeated", "out of order", "back at its sender", "in another session"])
def test_a_frame_out_of_its_place_is_refused(place: str) -> None:
    a, b = sessions()
    first, second = a.protect(b"create"), a.protect(b"create")
    if place == "repeated":
        b.verify(first)
    receiver = {"back at its sender": a, "in another session": sessions(nonce=b"d" * 32)[1]}.get(place, b)
    with pytest.raises(NotAuthenticated):
        receiver.verify(second if place == "out of order" else first)
