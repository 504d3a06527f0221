"""Step 2: corrected rows replace one month, and nothing else is touched."""

from demo.flights import by_day, corrected_month, with_corrected_month
from demo.scene import Scene
from demo.storage import Storage, fingerprints, footer_rows

FEBRUARY = 2
DAYS = 28


def tell(scene: Scene) -> None:
    with scene.step(2, "Replace February by corrected rows (dynamic overwrite), and touch nothing else"):
        before = scene.look()
        february_before = _february(before)
        others = before.data - february_before
        rows_before = footer_rows(scene.table, february_before)
        prints = fingerprints(before, others)
        rows = by_day(corrected_month(scene.flights, FEBRUARY), tasks=2)
        scene.write("February, corrected", rows, mode="overwrite")
        scene.expected = with_corrected_month(scene.expected, FEBRUARY)
        after = scene.look()
        scene.show_storage({"before": before, "after": after})
        replaced = len(february_before - after.data)
        untouched = len(prints.items() & fingerprints(after, others & after.data).items())
        rows_after = footer_rows(scene.table, _february(after))
        scene.report.table(
            ["files of", "before", "replaced", "same bytes, time and inode", "rows before", "rows after"],
            [
                ("February", len(february_before), replaced, len(february_before) - replaced, rows_before, rows_after),
                ("other months", len(others), len(others - after.data), untouched, "", ""),
            ],
        )
        scene.checks.equal("files replaced, all of February", replaced, DAYS)
        scene.checks.equal("files of other months with the same bytes, time and inode", untouched, len(others))
        scene.checks.equal("rows of February", rows_after, scene.expected_rows(FEBRUARY))
        scene.checks.at_rest(after)


def _february(storage: Storage) -> frozenset[str]:
    return frozenset(path for path in storage.data if path.startswith(f"month={FEBRUARY}/"))
