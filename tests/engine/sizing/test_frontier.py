"""Many small appends: how few files at which cost, beside what cannot be done better."""

import pytest

from tallymark import SizingSettings
from tests.engine.sizing.exact import frontier
from tests.engine.sizing.model import ModelTable

APPENDS, PARTITIONS, APPEND_BYTES = 200, 50, 400_000
FILES = {2: 40, 4: 23, 8: 12, 16: 6}
"""Of a partition, by budget: 200 / (2 x budget + 1), rounded up; the leeway makes 34 appends of the last one's 33."""


def appended(settings: SizingSettings) -> ModelTable:
    table = ModelTable(settings)
    for _ in range(APPENDS):
        table.append((f"p={number}", APPEND_BYTES) for number in range(PARTITIONS))
    return table


def near_the_frontier(files: int, rewritten: float, by: float) -> bool:
    """Whether a best possible outcome has at most so much fewer files and at most so much fewer bytes rewritten."""
    return any(
        files <= by * best_files and rewritten <= by * best_rewritten
        for best_files, best_rewritten in frontier(APPENDS, PARTITIONS, 50 * PARTITIONS)
    )


@pytest.mark.no_cover
@pytest.mark.parametrize("budget", FILES)
def test_balanced_lies_within_a_tenth_of_the_exact_frontier(budget: int) -> None:
    table = appended(SizingSettings(rewrite_budget=budget))
    rewritten = table.rewritten_bytes / table.inserted_bytes
    assert len(table.files) == FILES[budget] * PARTITIONS
    assert rewritten <= budget * 1.1
    assert near_the_frontier(len(table.files), rewritten, 1.1)


def test_hudi_leaves_one_file_a_partition_at_a_hundred_bytes_written_for_each_inserted() -> None:
    table = appended(SizingSettings(policy="hudi"))
    assert len(table.files) == PARTITIONS
    assert 1 + table.rewritten_bytes / table.inserted_bytes == pytest.approx(100, rel=0.05)


def test_the_frontier_is_what_equal_groups_cost() -> None:
    assert dict(frontier(20, 1, 20)) == {files: pytest.approx(cost) for files, cost in _equal_groups(20)}
    assert not near_the_frontier(12 * PARTITIONS, 12.0, 1.1)


def _equal_groups(appends: int) -> list[tuple[int, float]]:
    def cost(files: int) -> float:
        each, more = divmod(appends, files)
        return ((files - more) * each * (each - 1) / 2 + more * (each + 1) * each / 2) / appends

    return [(files, cost(files)) for files in range(1, appends + 1)]
