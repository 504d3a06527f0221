"""Faults made on purpose, to see that the simulation finds them: a judge that never says no has not judged.

Each module holds those of one part of the protocol. ``hunt`` plays seeds until one is found, ``__main__`` makes the
table.
"""

from tests.simulation.mutations import begin, deciding, excluding, marking
from tests.simulation.mutations.mutation import Mutation

GROUPS: tuple[tuple[str, tuple[Mutation, ...]], ...] = (
    ("Beginning", begin.MUTATIONS),
    ("Marker, then data", marking.MUTATIONS),
    ("Excluding what is lost", excluding.MUTATIONS),
    ("Deciding", deciding.MUTATIONS),
)
"""All mutations, by the part of the protocol that they break."""
