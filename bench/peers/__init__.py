"""What Tallymark is measured beside: the same verbs on a bare library, one file each, as a user would write them.

A peer promises no less than our backend does on the same store: it syncs what ours syncs and refuses to replace what
ours refuses to replace. It translates no errors, repeats nothing, checks no paths and counts no requests.
"""

from tallymark.bench.peers.peer import Peer

__all__ = ["Peer"]
