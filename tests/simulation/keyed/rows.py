"""Keys and orders of flights, and the model with which commits by key are compared."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping

KEYS = tuple(f"{number}-and a tail beyond sixteen bytes" for number in range(8))
"""So few that writers meet. Ranges are cut within the tail."""

ORDERS = 60
"""Of a writer's rows each has another, since it has fewer; those of two writers may have the same."""

Row = tuple[int, str]
"""Its flight, and the partition of its file."""


def key_of(flight: int) -> str:
    return KEYS[(3 * (flight // 100_000) + _place(flight)) % len(KEYS)]


def order_of(flight: int) -> int:
    return (5 * (flight // 100_000) + 7 * _place(flight)) % ORDERS


def deletes(flight: int) -> bool:
    """Whether it does, in a write of which some rows delete."""
    return _place(flight) % 3 == 1


def _place(flight: int) -> int:
    """The place of a row among those of its writer: attempts of a task have rows of the same keys."""
    task, place, row = flight // 10_000 % 10, flight % 1000 // 10, flight % 10
    return task * 20 + place * 2 + row


def check_changed(
    before: Counter[Row],
    after: Counter[Row],
    batch: Iterable[Row],
    counts: Mapping[str, int],
    *,
    mode: str,
    matched: str,
    by_partition: bool,
) -> None:
    """Check that a commit by key has applied its batch to the rows before it, and counts truly what that changed."""
    places: defaultdict[tuple[str, str], tuple[list[Row], list[Row], list[Row]]] = defaultdict(lambda: ([], [], []))
    batch = list(batch)
    for number, rows in enumerate((before.elements(), batch, after.elements())):
        for flight, partition in rows:
            places[key_of(flight), partition if by_partition else ""][number].append((flight, partition))
    updated_min = updated_max = 0
    for key, (stored, mine, found) in places.items():
        outcomes = _outcomes(stored, mine, mode=mode, matched=matched)
        assert sorted(found) in outcomes, f"{key} has {found}; {stored} and the batch's {mine} make {outcomes}"
        if found and found[0] not in stored and stored:
            there = [found[0][1] == partition for _, partition in stored]
            updated_min, updated_max = updated_min + all(there), updated_max + any(there)
    new, gone = (after - before).total(), (before - after).total()
    updated = counts["updated"]
    assert updated_min <= updated <= updated_max, f"{updated_min} to {updated_max} are updated, counted are {counts}"
    assert counts["inserted"] + updated == new, f"{new} rows are new, and counted are {counts}"
    assert counts["deleted"] + updated == gone, f"{gone} rows are gone, and counted are {counts}"
    changed = counts["inserted"] + gone + counts["ignored"] - counts["superseded"]
    assert changed == len(batch), f"{len(batch)} rows were written, and counted are {counts}"


def _outcomes(stored: list[Row], mine: list[Row], *, mode: str, matched: str) -> list[list[Row]]:
    """Return what the rows of one key may be. Of a doubled key any row may be the one that counts as stored."""
    if not mine or (matched == "keep" and stored):
        return [sorted(stored)]
    if mode == "delete":
        return [[]]
    winner = max(mine, key=lambda row: order_of(row[0]))
    made = [] if matched == "delete some" and deletes(winner[0]) else [winner]
    return [[one] if order_of(one[0]) > order_of(winner[0]) else made for one in stored] or [made]
