"""Put-if-absent on a store without rename, and the object's writer after an unclear answer.

S3 may answer 409 where nothing was written, and 412 or 500 where the caller's own earlier bytes were; a reset or a
timeout shows nothing. Each put-if-absent therefore carries a nonce, and after any answer but success the object's
metadata is read: our nonce, another's or none, or nothing there are three different things, also for equal bytes.
"""

import secrets

from tallymark.backends.errors import (
    AlreadyExists,
    BackendError,
    InvalidPath,
    NotFound,
    NotPermitted,
    Throttled,
    Unavailable,
)
from tallymark.backends.object_client import Data, ObjectClient


class Claim:
    """One caller's put of one new object, however often it is sent.

    An attempt that its caller has given up continues in its thread, beside the next one in another.
    """

    def __init__(self, client: ObjectClient, path: str, data: Data) -> None:
        self._client = client
        self._path = path
        self._data = data
        self._nonce = secrets.token_hex(16)
        self._unclear: set[object] = set()
        """Sends that may have been applied, or may yet be; a set is safe in several threads, as counting is not."""

    def attempt(self) -> None:
        """Send the put once; on return the object is this caller's. Blocking. May be called again after Unavailable.

        Raises:
            AlreadyExists: another's object is at the path.
            NotPermitted, InvalidPath: refused, this time: ``outcome`` returns what that means for all attempts.
            Unavailable: this attempt, or an earlier one, may have been applied.
        """
        send = object()
        self._unclear.add(send)
        try:
            self._client.put_new(self._path, self._data, self._nonce)
        except (NotPermitted, InvalidPath):
            self._unclear.discard(send)
            raise
        except (AlreadyExists, Unavailable) as answer:
            if isinstance(answer, AlreadyExists):
                self._unclear.discard(send)  # this send did nothing; an earlier one may have
            self._resolve(answer)

    def outcome(self, refusal: BackendError) -> BackendError:
        """Return a refusal that ended the claim: itself, or Unavailable where an earlier send may have been applied."""
        if not self._unclear:
            return refusal
        return Unavailable(f"{refusal} (an earlier request may have been taken)")

    def _resolve(self, answer: AlreadyExists | Unavailable) -> None:
        unknown = Throttled if isinstance(answer, Throttled) else Unavailable  # retried later, or soon
        try:
            found = self._client.nonce(self._path)
        except NotFound:
            raise unknown(f"{answer}; it was not there a moment later, and may still arrive") from answer
        except Unavailable:
            raise unknown(f"{answer}; and a check whether it is there failed") from answer
        if found != self._nonce:
            raise AlreadyExists(f"{self._client.at(self._path)} exists; another has put it") from answer
