import re

import pytest

from tallymark.backends.contract import check_path
from tallymark.engine.tasks.file_name import instant_of, new_file_name
from tallymark.engine.timeline.entry import DataFile

INSTANT = "20261121020304005"
ID = "bea41eaf-3038-4990-bf6a-dcfe93bbe039-0"


def test_a_name_holds_file_id_write_token_and_instant_which_is_found_in_it():
    name = new_file_name(instant=INSTANT, task=13, stage=1, attempt=2)
    assert re.fullmatch(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}-0_13-1-2_20261121020304005\.parquet", name)
    assert check_path(name) == name
    assert instant_of(name) == INSTANT


def test_each_name_has_a_file_id_of_its_own():
    names = [new_file_name(instant=INSTANT, task=0, stage=0, attempt=0) for _ in range(1000)]
    assert len({DataFile("", name, 0, 0).file_id for name in names}) == 1000


@pytest.mark.parametrize(
    "name",
    [
        "",
        "part-00000.parquet",
        "_SUCCESS",
        f"{ID}_0-0-0_{INSTANT}.parquet.tmp",
        f"x/{ID}_0-0-0_{INSTANT}.parquet",
        f"part-0_0-0-0_{INSTANT}.parquet",
        f"{ID}_0-0_{INSTANT}.parquet",
        f"{ID}_0-0-0_20261121026104005.parquet",
        f"{ID}_0-0-0_2026112102030400.parquet",
        f"{ID}_0-0-0_{INSTANT}.parquet\n",
    ],
)
def test_a_foreign_name_has_no_instant(name):
    assert instant_of(name) is None
