"""Faults made on purpose, to see that the simulation finds them.

Each module contains those of one part of the protocol. ``hunt`` plays seeds until one of them is found, ``__main__``
prints the table.
"""

from tests.simulation.mutations import (
    archiving,
    deciding,
    fencing,
    filling,
    lives,
    reading,
    rolling_back,
    segments,
    writing,
)
from tests.simulation.mutations.mutation import Mutation

GROUPS: tuple[tuple[str, tuple[Mutation, ...]], ...] = (
    ("Beginning", writing.BEGIN),
    ("Marker, then data", writing.MARKERS),
    ("Segments and their server", segments.SEGMENTS),
    ("Data files and reports", writing.DATA),
    ("Excluding what is lost", fencing.FENCES),
    ("Deciding", deciding.DECISIONS),
    ("Filling small files", filling.FILLS),
    ("After the entry", deciding.POST_COMMIT),
    ("Reading under a lease", reading.READERS),
    ("Views", reading.VIEWS),
    ("Rolling back", rolling_back.ROLLBACKS),
    ("Dead or alive", rolling_back.LEASES),
    ("Archiving", archiving.ARCHIVE),
    ("Tables that are replaced", lives.LIVES),
    ("Markers that others have changed", lives.DAMAGE),
)
"""All mutations, by the part of the protocol that they break."""
