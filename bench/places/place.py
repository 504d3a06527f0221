"""What a place consists of."""

from dataclasses import dataclass

from tallymark.bench.ours import Ours
from tallymark.bench.peers import Peer

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
