"""What a place consists of."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from tallymark.backends import BackendError, Unavailable
from tallymark.bench.ours import Ours
from tallymark.bench.peers import Peer

FOLDER = "tallymark-bench-"
"""Begins the name of what is made on a user's store."""

REMOVAL_S_MAX = 120.0
"""How long removing it may take: some thousand small objects at most."""


@dataclass(frozen=True, slots=True)
class Place:
    title: str
    where: str
    """What stands behind it: a file system, a server."""
    ours: Ours
    peer: Peer
    has_hop: bool = True
    """Whether an asynchronous program would call the peer in a thread; else it is a floor, and no bar is held to it."""


@contextmanager
def removing(url: str) -> Iterator[None]:
    """The block removes what was made below the URL. Raises Unavailable, with what is left to do, where it fails."""
    try:
        yield
    except (BackendError, OSError) as error:
        raise Unavailable(f"what was made below {url} could not be removed, please do ({error})") from error
