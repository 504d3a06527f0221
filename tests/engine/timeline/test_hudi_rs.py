"""What hudi-rs sees of tables made from our properties and projections."""

import tempfile
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tallymark.engine.timeline.projection import completed_path, projected_files
from tallymark.engine.timeline.scope import Scope
from tests.engine.timeline.entries import ALL, commit
from tests.support import arrow_types
from tests.support.examples import examples
from tests.support.hudi_table import HandMadeTable

T1, T2, T3 = "20261101000000000", "20261102000000001", "20261103235959999"
FLAT = pa.schema([("id", pa.int64())])
DATED_COLUMNS: dict[str, pa.DataType] = {"id": pa.int64(), "dt": pa.string()}
DATED = pa.schema(DATED_COLUMNS)


def row(id_: int, dt: str | None) -> dict[str, object]:
    return {"id": id_, "dt": dt}


def test_a_table_of_only_the_floor_is_empty_and_has_its_columns(tmp_path: Path) -> None:
    table = HandMadeTable(tmp_path, DATED, "dt")
    assert table.read().num_rows == 0
    assert table.read().schema.names == ["id", "dt"]


def test_a_table_without_partitions_is_read_after_overwrites_of_nothing_and_by_nothing(tmp_path: Path) -> None:
    table = HandMadeTable(tmp_path, FLAT)
    first = table.data_file(T1, "", [{"id": 1}])
    table.overwrite(T1, ALL, [first])
    assert table.rows() == [{"id": 1}]
    more = [table.data_file(T2, "", [{"id": number}]) for number in (2, 3)]
    table.append(T2, *more)
    assert table.rows() == [{"id": 1}, {"id": 2}, {"id": 3}]
    table.overwrite(T3, ALL, removed=[first, *more])
    assert table.rows() == []


def test_two_appends_are_read_together_and_an_overwrite_of_all_replaces_every_file(tmp_path: Path) -> None:
    table = HandMadeTable(tmp_path, DATED, "dt")
    first = table.data_file(T1, "dt=a", [row(1, "a")])
    table.append(T1, first)
    more = [table.data_file(T2, "dt=a", [row(2, "a")]), table.data_file(T2, "dt=b", [row(3, "b")])]
    table.append(T2, *more)
    assert table.rows() == [row(1, "a"), row(2, "a"), row(3, "b")]
    table.overwrite(T3, ALL, [table.data_file(T3, "dt=c", [row(9, "c")])], [first, *more])
    assert table.rows() == [row(9, "c")]


def test_nested_partitions_are_read_and_filtered_and_overwritten_below_a_prefix_also_by_nothing(tmp_path: Path) -> None:
    schema = pa.schema([("id", pa.int64()), ("year", pa.int32()), ("month", pa.int32())])
    table = HandMadeTable(tmp_path, schema, "year", "month")
    rows: list[dict[str, object]] = [{"id": at, "year": 2012 + at // 3, "month": at % 3} for at in range(6)]
    old = [table.data_file(T1, f"year={one['year']}/month={one['month']}", [one]) for one in rows]
    table.append(T1, *old)
    assert table.rows() == rows
    assert table.rows(("month", "=", "2")) == [rows[2], rows[5]]
    assert table.rows(("year", "=", "2012")) == rows[:3]
    assert table.rows(("year", "=", "2014")) == []
    new: dict[str, object] = {"id": 9, "year": 2013, "month": 2}
    scope = Scope(prefixes=frozenset({"year=2013"}))
    table.overwrite(T2, scope, [table.data_file(T2, "year=2013/month=2", [new])], old[3:])
    assert table.rows() == [*rows[:3], new]
    table.overwrite(T3, Scope(prefixes=frozenset({"year=2012"})), [], old[:3])
    assert table.rows() == [new]


def test_rows_stay_right_after_replaced_files_are_cleaned_and_others_appended(tmp_path: Path) -> None:
    table = HandMadeTable(tmp_path, DATED, "dt")
    old = table.data_file(T1, "dt=a", [row(1, "a")])
    table.append(T1, old)
    table.overwrite(T2, Scope(partitions=frozenset({"dt=a"})), [table.data_file(T2, "dt=a", [row(2, "a")])], [old])
    (tmp_path / old.path).unlink()
    table.append(T3, table.data_file(T3, "dt=a", [row(3, "a")]))
    assert table.rows() == [row(2, "a"), row(3, "a")]


def test_files_older_than_the_first_commit_are_not_read_because_of_the_floor(tmp_path: Path) -> None:
    table = HandMadeTable(tmp_path, FLAT)
    zombie = table.data_file(T1, "", [{"id": 66}])
    table.append(T2, table.data_file(T2, "", [{"id": 1}]))
    assert table.rows() == [{"id": 1}]
    for floor in (tmp_path / ".hoodie").glob("1970*"):
        floor.unlink()
    assert table.rows() == [{"id": 1}, {"id": 66}], f"without the floor {zombie.name} would be read"


@pytest.mark.parametrize("scope", [None, ALL], ids=["append", "overwrite"])
@pytest.mark.parametrize("instant", [T1, T3], ids=["older", "newer"])
def test_an_inflight_instant_is_not_read(tmp_path: Path, instant: str, scope: Scope | None) -> None:
    table = HandMadeTable(tmp_path, FLAT)
    committed = table.data_file(T2, "", [{"id": 1}])
    table.append(T2, committed)
    added, removed = (table.data_file(instant, "", [{"id": 66}]),), (committed,) if scope else ()
    pending = replace(commit(1, scope=scope, added=added, removed=removed), instant=instant)
    files = projected_files(pending, table.properties, new_partitions=())
    assert files[-1].path == completed_path(pending)
    table.put(files[:-1])
    assert table.rows() == [{"id": 1}]
    table.put(files[-1:])
    assert table.rows() == [*([] if scope else [{"id": 1}]), {"id": 66}]


@pytest.mark.parametrize("partition", ["", "dt=a"])
def test_a_fence_of_zero_rows_under_a_completed_instant_is_harmless(tmp_path: Path, partition: str) -> None:
    table = HandMadeTable(tmp_path, DATED, *(["dt"] if partition else []))
    table.append(T1, table.data_file(T1, partition, [row(1, "a")]))
    table.data_file(T1, partition, [])
    assert table.rows() == [row(1, "a")]


@pytest.mark.parametrize(
    ("value", "escaped"),
    [
        (None, "__HIVE_DEFAULT_PARTITION__"),
        ("a b", "a b"),
        ("a=b", "a%3Db"),
        ("50%", "50%25"),
        ("%41", "%2541"),
        ("x/y", "x%2Fy"),
        ("Zürich 東京 🙂", "Zürich 東京 🙂"),
        ("a+b&c", "a+b&c"),
        ("01", "01"),
        ("-7", "-7"),
    ],
)
def test_a_partition_with_an_awkward_name_is_read_filtered_and_overwritten_and_no_other(
    tmp_path: Path, value: str | None, escaped: str
) -> None:
    table = HandMadeTable(tmp_path, DATED, "dt")
    awkward = table.data_file(T1, f"dt={escaped}", [row(1, value)])
    table.append(T1, awkward, table.data_file(T1, "dt=other", [row(2, "other")]))
    assert table.rows() == [row(1, value), row(2, "other")]
    assert table.rows(("dt", "=", "other")) == [row(2, "other")]
    assert value is None or table.rows(("dt", "=", value)) == [row(1, value)]
    new = table.data_file(T2, f"dt={escaped}", [row(3, value)])
    table.overwrite(T2, Scope(partitions=frozenset({f"dt={escaped}"})), [new], [awkward])
    assert table.rows() == [row(2, "other"), row(3, value)]


def comes_back_equal(written: pa.Table) -> None:
    with tempfile.TemporaryDirectory() as folder:
        table = HandMadeTable(Path(folder), written.schema)
        table.append(T1, table.data_file(T1, "", written))
        assert table.read().to_pylist() == written.to_pylist()


@settings(max_examples=examples(40), deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_values_of_every_accepted_type_come_back_equal(data: st.DataObject) -> None:
    drawn = data.draw(arrow_types.schemas)
    columns = [field.with_name(f"c{at}_{field.name}") for at, field in enumerate(drawn)]
    schema = pa.schema([pa.field("row", pa.int32(), nullable=False), *columns])
    rows = data.draw(st.lists(arrow_types.rows_of(schema), min_size=1, max_size=4))
    written = pa.Table.from_pylist([{**one, "row": at} for at, one in enumerate(rows)], schema=schema)
    comes_back_equal(written)


@pytest.mark.parametrize("type_", arrow_types.PLAIN, ids=str)
@settings(max_examples=examples(3), deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_values_and_nulls_of_a_plain_type_come_back_equal(type_: pa.DataType, data: st.DataObject) -> None:
    schema = pa.schema([("row", pa.int32()), ("one", type_), ("many", pa.list_(type_))])
    values = [data.draw(arrow_types.rows_of(pa.schema([pa.field("one", type_, nullable=False)])))["one"], None]
    rows = [{"row": at, "one": value, "many": [value, None] if at else None} for at, value in enumerate(values)]
    written = pa.Table.from_pylist([*rows, {"row": 2, "one": values[0], "many": []}], schema=schema)
    comes_back_equal(written)
