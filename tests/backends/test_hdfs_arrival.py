"""What became of a new object on its way to its name. No HDFS runs here."""

import pytest

from tallymark.backends.errors import NotFound, NotPermitted, Unavailable
from tallymark.backends.hdfs_arrival import Arrival


class Place:
    """Files by path. The rename to the object's name is done, and its answer lost; then this user's ticket is over."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.is_refusing = False

    def write_scratch(self, scratch: str, data: bytes) -> None:
        self._ask()
        self.files[scratch] = data

    def bring(self, source: str, target: str) -> None:
        self._ask()
        if source not in self.files:
            raise NotFound(source)
        self.files[target] = self.files.pop(source)
        self.is_refusing = True
        raise Unavailable("the answer is lost")

    def exists(self, absolute: str) -> bool:
        self._ask()
        return absolute in self.files

    def discard(self, scratch: str) -> None:
        self.files.pop(scratch, None)

    def _ask(self) -> None:
        if self.is_refusing:
            raise NotPermitted("the ticket is over")


def test_a_refusal_while_it_is_found_out_is_no_refusal_of_the_object():
    place = Place()
    arrival = Arrival(place, "/tmp", "/a", b"mine")
    for told in ("the answer is lost", "the ticket is over"):
        with pytest.raises(Unavailable, match=told):
            arrival.attempt()
    assert place.files == {"/a": b"mine"}
    place.is_refusing = False
    arrival.attempt()
