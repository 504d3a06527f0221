"""Step 5: the cost of the markers, compared with one object each."""

from demo.scene import MarkerBill, Scene

FEWER_PUTS = 4
"""Least number of markers per put that passes: low enough for the small writes of this demo on any machine."""


def tell(scene: Scene) -> None:
    with scene.step(5, "What the markers cost, beside one object for each"):
        total = MarkerBill(
            "all",
            sum(bill.markers for bill in scene.bills),
            sum(bill.objects for bill in scene.bills),
            sum(bill.puts for bill in scene.bills),
        )
        scene.report.table(
            ["write", "markers asked", "puts, one object each", "puts", "objects", "fewer puts"],
            [_row(bill) for bill in (*scene.bills, total)],
        )
        scene.checks.that(
            f"at least {FEWER_PUTS} times fewer puts than one for each marker",
            _ratio(total) >= FEWER_PUTS,
            f"{total.puts:,} for {total.markers:,}",
        )
        scene.checks.at_rest(scene.look())


def _row(bill: MarkerBill) -> tuple[str, int, int, int, int, str]:
    return (bill.write, bill.markers, bill.markers, bill.puts, bill.objects, f"{_ratio(bill):.1f} x")


def _ratio(bill: MarkerBill) -> float:
    return bill.markers / bill.puts if bill.puts else 0.0
