"""What Tallymark is measured beside: the same verbs on a bare library, one file each, as a user would write them.

A peer promises no less than our backend does on the same store: it syncs what ours syncs and refuses to replace what
ours refuses to replace. It translates no errors, repeats nothing, checks no paths and counts no requests.

Beside them ``writers`` write DataFrames; ``timeline_server`` is Hudi's, which ``hudi_view`` asks for files and
``hudi_markers`` for markers, and ``delta_log`` is a Delta log and its reader.
"""

from tallymark.bench.peers.peer import Peer

__all__ = ["Peer"]
