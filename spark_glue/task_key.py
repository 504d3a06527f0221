"""Key by which Spark's shuffle sends a row to a given task.

A hash partitioner sends a row to task ``pmod(hash, count)``, and its hash of an int, Murmur3 with 32 bits (Austin
Appleby's ``MurmurHash3_x86_32``, as in Spark's ``hash`` function, with its seed of 42), loses nothing: each of its
steps can be inverted. So for any hash there is one int that has it.
"""

_SEED = 42
_C1 = 0xCC9E2D51
_C2 = 0x1B873593
_ADDED = 0xE6546B64
_FINAL_1 = 0x85EBCA6B
_FINAL_2 = 0xC2B2AE35
_INT_BYTES = 4
_MASK = 0xFFFFFFFF


def task_key(task: int) -> int:
    """Return the int that Spark hashes to ``task``, so that ``repartition(count, key)`` sends it there, if count >
    task.
    """
    state = _undo_final_mix(task) ^ _INT_BYTES
    state = (state - _ADDED) * _inverse(5) & _MASK
    mixed = _rotated(state, -13) ^ _SEED
    key = _rotated(mixed * _inverse(_C2) & _MASK, -15) * _inverse(_C1) & _MASK
    return key - (1 << 32) if key >> 31 else key


def _undo_final_mix(state: int) -> int:
    state ^= state >> 16
    state = state * _inverse(_FINAL_2) & _MASK
    state ^= state >> 13 ^ state >> 26
    state = state * _inverse(_FINAL_1) & _MASK
    return state ^ state >> 16


def _rotated(bits: int, by: int) -> int:
    by %= 32
    return (bits << by | bits >> (32 - by)) & _MASK


def _inverse(factor: int) -> int:
    """Return the factor that inverts a multiplication by an odd number, in 32 bits."""
    return pow(factor, -1, 1 << 32)
