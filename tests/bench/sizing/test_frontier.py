import pytest

from tallymark.bench.sizing.frontier import cheapest, curve, fewest


def every_history(appends):
    """What is rewritten by each way of giving appends, one after the other, to files: by the number of files."""
    costs: dict[tuple[int, ...], int] = {(): 0}
    for _ in range(appends):
        grown: dict[tuple[int, ...], int] = {}
        for files, cost in costs.items():
            for choice in (*range(len(files)), None):
                sizes = [*files, 1] if choice is None else [*files]
                if choice is not None:
                    sizes[choice] += 1
                more = cost + (0 if choice is None else files[choice])
                key = tuple(sorted(sizes))
                grown[key] = min(more, grown.get(key, more))
        costs = grown
    least: dict[int, int] = {}
    for files, cost in costs.items():
        least[len(files)] = min(cost, least.get(len(files), cost))
    return least


@pytest.mark.parametrize("appends", [1, 2, 3, 5, 8, 12])
def test_no_history_of_appends_is_cheaper_than_the_frontier_and_one_reaches_it(appends):
    found = {point.files: point.rewritten * appends for point in curve(appends)}
    assert found == pytest.approx(every_history(appends))


def test_equal_groups_of_m_appends_cost_half_of_m_less_one():
    assert [cheapest(200, files).rewritten for files in (1, 10, 40, 200)] == [99.5, 9.5, 2.0, 0.0]


def test_fewest_files_are_those_whose_cost_is_still_within_the_bytes():
    assert [fewest(200, rewritten).files for rewritten in (0, 2, 2.0001, 4, 8, 16, 99.5)] == [200, 40, 40, 23, 12, 7, 1]
