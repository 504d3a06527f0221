"""Faults made on purpose, to see that the simulation finds them.

Each module contains those of one part of the protocol. ``hunt`` plays seeds until one of them is found, ``__main__``
prints the table.
"""

from tests.simulation.mutations import (
    archiving,
    changing,
    deciding,
    fencing,
    filling,
    lives,
    reading,
    rolling_back,
    segments,
    shared,
    together,
    writing,
)

GROUPS = (
    writing.BEGIN,
    writing.MARKERS,
    segments.SEGMENTS,
    writing.DATA,
    fencing.FENCES,
    deciding.DECISIONS,
    filling.FILLS,
    deciding.POST_COMMIT,
    reading.READERS,
    reading.VIEWS,
    rolling_back.ROLLBACKS,
    rolling_back.LEASES,
    archiving.ARCHIVE,
    lives.LIVES,
    lives.DAMAGE,
    changing.CHANGES,
    shared.SHARED,
    together.TOGETHER,
)
"""All mutations, by the part of the protocol that they break."""

MUTATIONS = tuple(mutation for group in GROUPS for mutation in group.mutations)
