"""The outcome of a put-if-absent by rename. No HDFS runs here."""

import pytest

from tallymark.backends.errors import NotFound, NotPermitted, Unavailable
from tallymark.backends.hdfs.rename_outcome import RenameOutcome


class Files:
    """Files by path. The rename to the target succeeds, and its answer is lost; then this user's ticket has expired."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.is_refusing = False

    def write_scratch(self, scratch: str, data: bytes) -> None:
        self._refuse_if_expired()
        self.files[scratch] = data

    def rename(self, source: str, target: str) -> None:
        self._refuse_if_expired()
        if source not in self.files:
            raise NotFound(source)
        self.files[target] = self.files.pop(source)
        self.is_refusing = True
        raise Unavailable("the answer is lost")

    def exists(self, absolute: str) -> bool:
        self._refuse_if_expired()
        return absolute in self.files

    def discard(self, scratch: str) -> None:
        self.files.pop(scratch, None)

    def _refuse_if_expired(self) -> None:
        if self.is_refusing:
            raise NotPermitted("the ticket has expired")


def test_a_refusal_while_the_outcome_is_resolved_does_not_refuse_the_object():
    files = Files()
    outcome = RenameOutcome(files, "/tmp", "/a", b"mine")
    for message in ("the answer is lost", "the ticket has expired"):
        with pytest.raises(Unavailable, match=message):
            outcome.attempt()
    assert files.files == {"/a": b"mine"}
    files.is_refusing = False
    outcome.attempt()
