"""Handshake and frame authentication of both sides. Sans-I/O, HMAC-SHA256 throughout.

Both sides hold the job's key and show it over both sides' fresh nonces and everything said so far:

    client                                             server
    hello      magic, protocol, release, job, nonce      ->
               <-  challenge  protocol, release, nonce
    proof      HMAC(job key, "client", all of the above) ->
               <-  welcome    frame limit, HMAC(job key, "server", all of the above, frame limit)

From then on each frame ends in 16 bytes of an HMAC over its number and its body, with a key of the session and the
direction: what is forged, altered, repeated, reordered or sent back to its sender is refused.

The protocol has no confidentiality. Names and sizes of files can be read in transit; the job's key cannot. Where the
network is not trusted with file names, run the service behind TLS or in an encrypted network.

Owns: keys, proofs, versions. Does not own: sockets, time limits, what the messages inside mean (``messages``).
"""

import hashlib
import hmac
import re
from dataclasses import dataclass, field
from typing import Final

from tallymark.engine.errors import InvalidRequest, NotAuthenticated, ServiceUnavailable
from tallymark.engine.rpc.frames import encode_frame
from tallymark.engine.rpc.messages import REFUSAL, WHOLE_CONNECTION, Refusal, Scalar, decode_answer, pack, unpack

PROTOCOL: Final = 2
"""Version of the wire protocol: both sides have to speak the same one. A later release that raises it still serves
tasks of the two releases before, in the protocol of their hello, and its drivers use a service of the release before in
that service's."""
PROTOCOLS: Final = (PROTOCOL,)
"""Versions that this release serves."""
RELEASE: Final = "0.1"
"""Major and minor number of this release, for the error of a peer that speaks another protocol."""
NONCE_BYTES: Final = 32
MAC_BYTES: Final = 16
"""Bytes that a session adds to a message."""
SECRET_BYTES_MIN: Final = 32

_MAGIC = "tallymark"
_HELLO, _CHALLENGE, _PROOF, _WELCOME = 16, 17, 18, 19
_PLAIN = re.compile(r"[0-9.]{1,20}")
_REMEDY = "install one release of tallymark on the driver and on every executor"


@dataclass(frozen=True, slots=True)
class ServiceAddress:
    """Address of the job's service, and the key that gives access to that job and nothing else."""

    host: str
    port: int
    job_key: bytes = field(repr=False)
    job: str = ""
    """The job's name at a service outside of its driver (``job_name``); empty for the driver's own service, which knows
    a job by its instant."""
    certificates: str | None = None
    """With TLS the certificates to trust, in PEM, or empty for the system's; None without TLS."""


COMMITS = "commits"
"""Stands for the instant in the name of what decides a table's commits."""

JOB_NAME_BYTES_MAX = 768
"""Of a job's name in UTF-8: the hello that has it fits the frames of peers that are not authenticated."""


def job_name(instant: str, url: str) -> str:
    """Return the name of a job at a service of many tables. Raises InvalidRequest for a URL that is too long."""
    name = f"{instant} {url}"
    if len(name.encode("utf-8")) > JOB_NAME_BYTES_MAX:
        raise InvalidRequest(f"{url[:200]!r}... is too long for a service: at most {JOB_NAME_BYTES_MAX} bytes")
    return name


def of_job_name(name: str) -> tuple[str, str]:
    """Return the instant and the URL of the table."""
    instant, _, url = name.partition(" ")
    return instant, url


def job_key(secret: bytes, job: str) -> bytes:
    """Return the key of one job at the service that has the secret. It reveals nothing about another job's key.

    Raises:
        InvalidRequest: the secret is too short to resist guessing.
    """
    if len(secret) < SECRET_BYTES_MIN:
        raise InvalidRequest(
            f"a secret of {len(secret)} bytes: give at least {SECRET_BYTES_MIN} random ones, as of secrets.token_bytes"
        )
    return _hmac(secret, b"tallymark job key 1\0" + job.encode("utf-8"))


class Session:
    """Both directions of one authenticated connection. A frame that fails ends the connection."""

    def __init__(self, key: bytes, *, is_server: bool) -> None:
        to_server = _Direction(_hmac(key, b"client to server"))
        to_client = _Direction(_hmac(key, b"server to client"))
        self._sending, self._receiving = (to_client, to_server) if is_server else (to_server, to_client)

    def protect(self, body: bytes) -> bytes:
        """Return the frame for this message. Frames must be sent in the order in which they were protected."""
        return body + self._sending.next_mac(body)

    def verify(self, frame: bytes) -> bytes:
        """Return the message in this frame. Raises NotAuthenticated unless it is the peer's next."""
        body, mac = frame[:-MAC_BYTES], frame[-MAC_BYTES:]
        if not hmac.compare_digest(self._receiving.next_mac(body), mac):
            raise NotAuthenticated("a frame that the peer did not send, or not now; the connection is closed")
        return body


class ServerHandshake:
    """The server's half: pass it the peer's frames, send what it returns, until ``session`` is set."""

    def __init__(self, secret: bytes, *, nonce: bytes, frame_bytes: int) -> None:
        """``nonce``: NONCE_BYTES from a cryptographic source, never used before.

        ``frame_bytes`` is sent to the client.
        """
        self._secret = secret
        self._nonce = nonce
        self._frame_bytes = frame_bytes
        self._transcript = _Transcript()
        self._key: bytes | None = None
        self.job = ""
        """The job that the peer has named; authenticated once ``session`` is set."""
        self.session: Session | None = None

    def receive(self, frame: bytes) -> bytes:
        """Return the answer to the peer's frame. Raises NotAuthenticated; then the handshake is over."""
        if self._key is None:
            return self._challenge(frame)
        return self._welcome(self._key, frame)

    def _challenge(self, frame: bytes) -> bytes:
        match _unpack(frame):
            case [int(kind), str(magic), int(protocol), str(release), *rest] if (kind, magic) == (_HELLO, _MAGIC):
                _check_version(task=(protocol, release), driver=(PROTOCOL, RELEASE))
            case _:
                raise _stranger("hello")
        match rest:
            case [str(job), bytes(nonce)] if len(nonce) == NONCE_BYTES:
                self.job = job
            case _:
                raise _stranger("hello")
        self._key = job_key(self._secret, self.job)
        challenge = pack(_CHALLENGE, PROTOCOL, RELEASE, self._nonce)
        self._transcript.add(frame)
        self._transcript.add(challenge)
        return challenge

    def _welcome(self, key: bytes, frame: bytes) -> bytes:
        match _unpack(frame):
            case [int(kind), bytes(proof)] if kind == _PROOF and self.session is None:
                what = f"the key does not open {_shown(self.job)} here"
                _check_proof(self._transcript.mac(key, b"client"), proof, what)
            case _:
                raise _stranger("proof")
        self._transcript.add(frame)
        self._transcript.add(pack(self._frame_bytes))
        self.session = Session(self._transcript.mac(key, b"session"), is_server=True)
        return pack(_WELCOME, self._frame_bytes, self._transcript.mac(key, b"server"))


class ClientHandshake:
    """The client's half: send ``hello()``, pass it the peer's frames, send what it returns, until ``session`` is set.

    A refusal by the service is raised as the error that it is.
    """

    def __init__(self, key: bytes, job: str, *, nonce: bytes) -> None:
        """``key`` is the job's. ``nonce``: NONCE_BYTES from a cryptographic source, never used before."""
        self._key = key
        self._job = job
        self._nonce = nonce
        self._transcript = _Transcript()
        self._has_proved = False
        self.frame_bytes = 0
        """The largest frame that the service accepts, once ``session`` is set."""
        self.session: Session | None = None

    def hello(self) -> bytes:
        hello = pack(_HELLO, _MAGIC, PROTOCOL, RELEASE, self._job, self._nonce)
        self._transcript.add(hello)
        return hello

    def receive(self, frame: bytes) -> bytes | None:
        """Return what to send next, if anything. Raises NotAuthenticated, or the error of the service's refusal."""
        fields = _unpack(frame)
        if fields[:2] == [REFUSAL, WHOLE_CONNECTION]:
            _raise_refusal(frame)
        if not self._has_proved:
            return self._prove(frame, fields)
        self._be_welcomed(fields)
        return None

    def _prove(self, frame: bytes, fields: list[Scalar]) -> bytes:
        match fields:
            case [int(kind), int(protocol), str(release), *rest] if kind == _CHALLENGE:
                _check_version(task=(PROTOCOL, RELEASE), driver=(protocol, release))
            case _:
                raise _stranger("challenge")
        match rest:
            case [bytes(nonce)] if len(nonce) == NONCE_BYTES:
                self._transcript.add(frame)
            case _:
                raise _stranger("challenge")
        proof = pack(_PROOF, self._transcript.mac(self._key, b"client"))
        self._transcript.add(proof)
        self._has_proved = True
        return proof

    def _be_welcomed(self, fields: list[Scalar]) -> None:
        match fields:
            case [int(kind), int(frame_bytes), bytes(proof)] if kind == _WELCOME and self.session is None:
                self._transcript.add(pack(frame_bytes))
            case _:
                raise _stranger("welcome")
        _check_proof(self._transcript.mac(self._key, b"server"), proof, "the service does not know the job's key")
        self.frame_bytes = frame_bytes
        self.session = Session(self._transcript.mac(self._key, b"session"), is_server=False)


class _Direction:
    """The frames of one direction, numbered from 0."""

    def __init__(self, key: bytes) -> None:
        self._keyed = hmac.new(key, digestmod="sha256")
        """State before any message: copying it is cheaper than keying a new one."""
        self._count = 0

    def next_mac(self, body: bytes) -> bytes:
        mac = self._keyed.copy()
        mac.update(self._count.to_bytes(8, "big") + body)
        self._count += 1
        return mac.digest()[:MAC_BYTES]


class _Transcript:
    """All messages of the handshake so far, each with its length, so that none can be read as two."""

    def __init__(self) -> None:
        self._hash = hashlib.sha256()

    def add(self, message: bytes) -> None:
        self._hash.update(encode_frame(message))

    def mac(self, key: bytes, purpose: bytes) -> bytes:
        return _hmac(key, purpose + b"\0" + self._hash.digest())


def _hmac(key: bytes, message: bytes) -> bytes:
    return hmac.digest(key, message, "sha256")


def _unpack(frame: bytes) -> list[Scalar]:
    try:
        return unpack(frame)
    except InvalidRequest as error:
        raise _stranger("message") from error


def _check_version(*, task: tuple[int, str], driver: tuple[int, str]) -> None:
    if task[0] != driver[0]:
        raise NotAuthenticated(f"the task runs tallymark {_version(task)}, the driver {_version(driver)}; {_REMEDY}")


def _version(version: tuple[int, str]) -> str:
    protocol, release = version
    return f"{_shown(release)} (protocol {protocol})"


def _shown(text: str) -> str:
    """Return what a peer has sent that is not authenticated, if that is a release or a job."""
    return text if _PLAIN.fullmatch(text) else "something else"


def _check_proof(expected: bytes, proof: bytes, what: str) -> None:
    if not hmac.compare_digest(expected, proof):
        raise NotAuthenticated(f"{what}; use the ticket of the job that is running, made by the driver it names")


def _stranger(what: str) -> NotAuthenticated:
    return NotAuthenticated(
        f"no {what} of tallymark's protocol; check that host and port are those of the driver's service"
    )


def _raise_refusal(frame: bytes) -> None:
    """Raise the refusal of a service that is not authenticated: enough to stop or retry, not to be trusted."""
    try:
        answer = decode_answer(frame)
    except InvalidRequest as error:
        raise _stranger("refusal") from error
    assert isinstance(answer, Refusal)
    if isinstance(answer.error, InvalidRequest):
        raise NotAuthenticated(str(answer.error))
    raise ServiceUnavailable(str(answer.error))
