"""Faults made on purpose, to see that the simulation finds them: a judge that never says no has not judged.

Each module holds those of one part of the protocol. ``hunt`` plays seeds until one is found, ``__main__`` makes the
table.
"""

from tests.simulation.mutations import (
    begin,
    data,
    deciding,
    fencing,
    filling,
    finishing,
    leases,
    marking,
    reading,
    rolling_back,
    segments,
    viewing,
)
from tests.simulation.mutations.mutation import Mutation

GROUPS: tuple[tuple[str, tuple[Mutation, ...]], ...] = (
    ("Start", begin.MUTATIONS),
    ("Marker, then data", marking.MUTATIONS),
    ("Segments and their server", segments.MUTATIONS),
    ("Data files and reports", data.MUTATIONS),
    ("Fencing what is lost", fencing.MUTATIONS),
    ("Deciding", deciding.MUTATIONS),
    ("Filling small files", filling.MUTATIONS),
    ("After the entry", finishing.MUTATIONS),
    ("Reading under a lease", reading.MUTATIONS),
    ("Views", viewing.MUTATIONS),
    ("Rolling back", rolling_back.MUTATIONS),
    ("Dead or alive", leases.MUTATIONS),
)
"""All mutations, by the part of the protocol that they break."""
