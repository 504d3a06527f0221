"""Changes of an upsert or delete, merged into the rows of one file by position.

Examples write a row as three characters, its id, its order value ``t`` and its value ``v``; ``_`` is null.
"""

from collections.abc import Iterable, Sequence
from itertools import chain, pairwise
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tallymark.engine.errors import CorruptObject, InvalidRequest
from tallymark.engine.tasks.merge import ACTION, ROW, Action, FileMerge
from tallymark.engine.timeline.entry import DataFile
from tests.support.arrow_types import PLAIN, data_types, rows_of
from tests.support.examples import examples

WRITE, DELETE, FORCE_DELETE, IGNORE = Action
TYPES: dict[str, Any] = {"id": pa.string(), "t": pa.int64(), "v": pa.string()}
SCHEMA = pa.schema(TYPES)
POSITION = [pa.field(ROW, pa.int64()), pa.field(ACTION, pa.int8())]
FILE = DataFile("day=1", "old.parquet", 4, 100)


def row(text: str) -> dict[str, Any]:
    id_, t, v = list(text)
    return {"id": id_, "t": None if t == "_" else int(t), "v": None if v == "_" else v}


def old(text: str) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([row(one) for one in text.split()], SCHEMA)


OLD = old("a5o b5o c5o d_o")


def changes_of(schema: pa.Schema, rows: Sequence[dict[str, Any]]) -> pa.RecordBatch:
    columns = [*(field.with_nullable(True) for field in schema), *POSITION]
    return pa.RecordBatch.from_pylist(list(rows), pa.schema(columns))


def changes(*rows: dict[str, Any]) -> pa.RecordBatch:
    return changes_of(SCHEMA, rows)


def at(position: int | None, text: str, action: Action = WRITE) -> dict[str, Any]:
    return {ROW: position, ACTION: int(action), **row(text)}


def new(text: str, action: Action = WRITE) -> dict[str, Any]:
    return at(None, text, action)


def text(batches: Sequence[pa.RecordBatch]) -> str:
    rows = [one for batch in batches for one in batch.to_pylist()]
    return " ".join("".join("_" if value is None else str(value) for value in one.values()) for one in rows)


def counts(merge: FileMerge) -> dict[str, int]:
    found = {name: getattr(merge, name) for name in ("updated", "deleted", "inserted", "ignored")}
    return {name: count for name, count in found.items() if count}


def merged(*batches: pa.RecordBatch, key=("id",), order_by=("t",), of=(OLD,)) -> tuple[str, dict[str, int]]:
    merge = FileMerge(SCHEMA, FILE, of, key=key, order_by=order_by)
    rows = [*chain.from_iterable(map(merge.apply, batches)), *merge.finish()]
    assert all(batch.schema == SCHEMA for batch in rows)
    return text(rows), counts(merge)


def test_rows_are_replaced_and_deleted_in_place_and_inserts_follow():
    batch = changes(at(0, "a6n", DELETE), at(2, "c6n"), new("e1n"), new("f1n"))
    assert merged(batch) == ("b5o c6n d_o e1n f1n", {"updated": 1, "deleted": 1, "inserted": 2})


def test_a_change_that_is_older_than_the_stored_row_is_ignored_and_an_equal_one_wins():
    batch = changes(at(0, "a4n"), at(1, "b5n"), at(2, "c4n", DELETE))
    assert merged(batch) == ("a5o b5n c5o d_o", {"updated": 1, "ignored": 2})


def test_null_is_least_in_the_order():
    assert merged(changes(at(0, "a_n"), at(3, "d_n"))) == ("a5o b5o c5o d_n", {"updated": 1, "ignored": 1})
    assert merged(changes(at(3, "d0n"))) == ("a5o b5o c5o d0n", {"updated": 1})


def test_later_order_columns_decide_where_earlier_ones_are_equal():
    batch = changes(at(0, "a5n"), at(0, "a5p"), at(1, "b5n"), at(2, "c6a"))
    assert merged(batch, order_by=("t", "v")) == ("a5p b5o c6a d_o", {"updated": 2, "ignored": 2})


def test_a_forced_delete_ignores_the_order_and_not_the_key():
    assert merged(changes(at(0, "a__", FORCE_DELETE))) == ("b5o c5o d_o", {"deleted": 1})
    with pytest.raises(CorruptObject):
        merged(changes(at(1, "a__", FORCE_DELETE)))


@pytest.mark.parametrize("cut", range(4))
def test_the_greatest_change_of_a_row_wins_also_across_batches(cut):
    batch = changes(at(1, "b_n"), at(1, "b7x", DELETE), at(1, "b8m"), at(2, "c9m"))
    expected = "a5o b8m c9m d_o", {"updated": 2, "ignored": 2}
    assert merged(batch.slice(0, cut), batch.slice(cut)) == expected


@pytest.mark.parametrize("cut", range(6))
def test_inserts_of_one_key_are_one_and_a_delete_that_wins_leaves_none(cut):
    batch = changes(new("e1x"), new("e2n"), new("f1x"), new("f2x", DELETE), new("g1x", DELETE), new("g2n"))
    expected = "a5o b5o c5o d_o e2n g2n", {"inserted": 2, "ignored": 4}
    assert merged(batch.slice(0, cut), batch.slice(cut)) == expected


def test_a_delete_of_a_key_that_is_not_there_is_ignored():
    assert merged(changes(new("e1x", DELETE), new("f1x", FORCE_DELETE)))[1] == {"ignored": 2}


def test_an_ignored_change_is_counted_and_nothing_else():
    batch = changes(at(0, "a9x", IGNORE), at(0, "a9y", IGNORE), at(0, "a6n"), at(99, "x1x", IGNORE), new("e1x", IGNORE))
    assert merged(batch, changes(at(0, "x9x", IGNORE))) == ("a6n b5o c5o d_o", {"updated": 1, "ignored": 5})


def test_without_an_old_file_all_changes_are_inserts():
    merge = FileMerge(SCHEMA, key=["id"])
    assert text([*merge.apply(changes(new("a1n"), new("b1n"))), *merge.finish()]) == "a1n b1n"
    with pytest.raises(CorruptObject, match="a new file: a change of id='a' names row 0, and the file has 0 rows"):
        list(FileMerge(SCHEMA, key=["id"]).apply(changes(at(0, "a1n"), new("b1n"))))


def test_equal_changes_are_one():
    assert merged(changes(at(0, "a6n"), at(0, "a6n"), new("e1_"), new("e1_")), order_by=()) == (
        "a6n b5o c5o d_o e1_",
        {"updated": 1, "inserted": 1, "ignored": 2},
    )


def test_nan_is_equal_to_nan_and_null_to_null_in_columns_of_any_type():
    nested = pa.struct([("x", pa.list_(pa.float64())), ("m", pa.map_(pa.string(), pa.int64()))])
    types: dict[str, Any] = {"id": pa.int64(), "f": pa.float64(), "n": nested, "z": pa.decimal128(9, 2)}
    schema = pa.schema(types)
    insert, nan = {ROW: None, ACTION: int(WRITE)}, float("nan")
    one: dict[str, Any] = {**insert, "id": 1, "f": nan, "n": {"x": [nan, None], "m": [("a", None)]}, "z": None}
    null = {**insert, "id": 2, "f": None, "n": None, "z": None}
    merge = FileMerge(schema, key=["id"])
    list(merge.apply(changes_of(schema, [one, one, null, null])))
    list(merge.finish())
    assert counts(merge) == {"inserted": 2, "ignored": 2}
    for difference in ({"f": 0.0}, {"n": None}, {"n": {"x": [0.0, None], "m": []}}, {"z": 1}):
        with pytest.raises(InvalidRequest):
            list(FileMerge(schema, key=["id"]).apply(changes_of(schema, [one, one | difference])))


def test_two_deletes_are_one_whatever_else_they_contain():
    assert merged(changes(at(0, "a5n", DELETE), at(0, "a5m", DELETE)))[1] == {"deleted": 1, "ignored": 1}


@pytest.mark.parametrize(
    ("batches", "order_by", "message"),
    [
        ([[at(0, "a6n"), at(0, "a6m")]], ("t",), r"are equal in order_by \(t\), .*: id='a'; add a column to order_by"),
        ([[at(0, "a6n")], [at(0, "a6m")]], ("t",), "wins: id='a';"),
        ([[at(0, "a_n"), at(0, "a_m"), at(0, "a6m")]], ("t",), "wins: id='a';"),
        ([[at(0, "a6n"), at(0, "a6n", DELETE)]], ("t",), "wins: id='a';"),
        ([[at(0, "a6n", DELETE), at(0, "a6n", FORCE_DELETE)]], ("t",), "wins: id='a';"),
        ([[at(0, "a6n"), at(0, "a7n")]], (), "have no order_by, .*: id='a'; add a column"),
        (
            [[new(f"{id_}1{v}") for id_ in "abcdefg" for v in "xy"]],
            ("t",),
            "id='a'; id='b'; .*; id='e' and 2 more; add",
        ),
    ],
)
def test_changes_that_differ_and_are_of_equal_order_are_refused_by_key(batches, order_by, message):
    with pytest.raises(InvalidRequest, match=message):
        merged(*(changes(*rows) for rows in batches), order_by=order_by)


def test_a_position_of_another_key_is_never_written():
    with pytest.raises(CorruptObject, match=r"day=1/old\.parquet: a change of id='b' names row 2, which is of id='c'"):
        merged(changes(at(0, "a6n"), at(2, "b6n"), at(3, "d6n")))
    with pytest.raises(CorruptObject, match="a change of id='b', v='x' names row 1, which is of id='b', v='o'"):
        merged(changes(at(1, "b9x")), key=("id", "v"))


@pytest.mark.parametrize("cut", range(1, 3))
def test_of_two_keys_at_one_position_one_is_wrong(cut):
    batch = changes(at(1, "b6n"), at(1, "c6n"), at(2, "c6n"))
    with pytest.raises(CorruptObject, match="a change of id='c' names row 1, which "):
        merged(batch.slice(0, cut), batch.slice(cut))


@pytest.mark.parametrize(("position", "problem"), [(4, "the file has 4 rows"), (-1, "is not a row of the file")])
def test_a_position_outside_the_file_is_refused(position, problem):
    with pytest.raises(
        CorruptObject, match=rf"day=1/old.parquet: a change of id='e' names row {position}, .*{problem}"
    ):
        merged(changes(at(position, "e6n")))


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (at(2, "c6n"), at(1, "b6n")),
        (new("c6n"), at(1, "b6n")),
        (new("f6n"), new("e6n")),
        (at(1, "b7n"), at(1, "b6n")),
        (at(1, "b7n"), at(1, "b_n")),
    ],
)
@pytest.mark.parametrize("cut", [1, 2])
def test_changes_out_of_order_are_refused(first, second, cut):
    batch = changes(first, second)
    with pytest.raises(InvalidRequest, match=r"of day=1/old.parquet are not sorted: \(_tallymark_row=.* follows \("):
        merged(batch.slice(0, cut), batch.slice(cut))


def test_a_predicate_deletes_by_position_alone():
    rows = [{ROW: position, ACTION: int(FORCE_DELETE)} for position in (1, 1, 3)]
    batch = changes_of(pa.schema([]), rows)
    assert merged(batch, key=(), order_by=()) == ("a5o c5o", {"deleted": 2, "ignored": 1})
    with pytest.raises(InvalidRequest, match="only deletes need no key"):
        merged(changes(at(0, "a6n")), key=())


@pytest.mark.parametrize("action", [4, -1, None])
def test_an_unknown_action_is_refused(action):
    with pytest.raises(InvalidRequest, match="_tallymark_action has a value that is not an Action"):
        merged(changes({**at(0, "a6n"), ACTION: action}))


def test_a_required_column_may_be_null_in_a_delete_alone():
    schema = pa.schema([*list(SCHEMA)[:2], pa.field("v", pa.string(), nullable=False)])
    of = OLD.cast(schema)
    merge = FileMerge(schema, FILE, [of], key=["id"])
    assert text([*merge.apply(changes(at(0, "a__", DELETE), at(1, "b5n"))), *merge.finish()]) == "b5n c5o d_o"
    for wrong in (at(0, "a6_"), new("e6_")):
        merge = FileMerge(schema, FILE, [of], key=["id"])
        with pytest.raises(InvalidRequest, match="column 'v' has 1 nulls"):
            list(chain(merge.apply(changes(wrong)), merge.finish()))


def test_old_rows_are_yielded_up_to_the_last_change_that_cannot_be_superseded():
    merge = FileMerge(SCHEMA, FILE, [OLD.slice(0, 1), OLD.slice(1)], key=["id"], order_by=["t"])
    assert text(list(merge.apply(changes(at(2, "c6n"))))) == ""
    assert text(list(merge.apply(changes(at(2, "c7n"), at(3, "d1n"))))) == "a5o b5o c7n"
    assert text(list(merge.apply(changes(new("e1n"), new("f1n"))))) == "d1n e1n"
    assert text(list(merge.finish())) == "f1n"


def address(batch: pa.RecordBatch) -> Any:
    data: Any = batch.column("v").buffers()[2]
    return data.address


def test_batches_without_a_change_pass_through_without_a_copy():
    batches = [old("a1o b1o"), old("c1o d1o"), old("e1o f1o")]
    merge = FileMerge(SCHEMA, FILE, batches, key=["id"], order_by=["t"])
    passed = [*merge.apply(changes(at(0, "a0n"), at(4, "e0n"), at(5, "f2n"))), *merge.finish()]
    assert [address(batch) for batch in passed if text([batch]) != "f2n"] == [address(batch) for batch in batches]
    assert text(passed) == "a1o b1o c1o d1o e1o f2n"


def test_a_batch_of_changes_is_released_with_the_next():
    merge = FileMerge(SCHEMA, FILE, [OLD], key=["id"])
    before = pa.total_allocated_bytes()
    for number in range(10):
        batch = changes(*({**new("a1n"), "id": f"{number}-{other:04}" + 100 * "x"} for other in range(1000)))
        for _ in merge.apply(batch):
            pass
        del batch, _
        assert pa.total_allocated_bytes() - before < 20_000


KEY_TYPES = [type_ for type_ in PLAIN if not pa.types.is_floating(type_)]


@st.composite
def merges(draw):
    """A schema, the rows of a file, and sorted changes, of few keys and order values, so that many are equal."""
    types = st.sampled_from(KEY_TYPES)
    keys = {f"k{number}": type_ for number, type_ in enumerate(draw(st.lists(types, min_size=1, max_size=2)))}
    order = {f"o{number}": type_ for number, type_ in enumerate(draw(st.lists(types, max_size=2)))}
    others = {**order, "v": draw(data_types), "n": pa.int64()}
    fields = [pa.field(name, type_, nullable=name in others) for name, type_ in (keys | others).items()]
    schema = pa.schema(fields)
    pool = st.sampled_from(draw(st.lists(rows_of(schema), min_size=3, max_size=6)))

    def mixed(number: int) -> dict[str, Any]:
        parts = zip((keys, order, ("v",)), (draw(pool), draw(pool), draw(pool)), strict=True)
        return {name: part[name] for names, part in parts for name in names} | {"n": number}

    file = [mixed(number) for number in range(draw(st.sampled_from([12, 7, 0])))]
    # With ``n`` only repeated changes are of equal order.
    order_by = [*order, "n"] if draw(st.booleans()) else list(order)
    found = []
    for number in range(100, 100 + draw(st.integers(1, 12))):
        position = draw(st.sampled_from([*range(len(file)), None, None]))
        change = mixed(number) | {ROW: position, ACTION: draw(st.sampled_from([0, 0, 0, 1, 2, 3]))}
        if position is not None:
            change |= {name: file[position][name] for name in keys}
        found += [change] * draw(st.sampled_from([1, 1, 1, 2]))
    found.sort(key=lambda one: (one[ROW] is None, one[ROW] or 0, values(one, keys), rank(one, order_by)))
    return schema, list(keys), order_by, file, found


def values(row: dict[str, Any], names: Iterable[str]) -> tuple[Any, ...]:
    return tuple(row[name] for name in names)


def rank(row: dict[str, Any], order: Iterable[str]) -> tuple[Any, ...]:
    return tuple((value is not None, value) for value in values(row, order))


def model(key: Sequence[str], order: Sequence[str], file: list[Any], found: list[Any]) -> tuple[Any, Any] | None:
    """The rows and counts to expect, or None where changes that differ are of equal order."""
    groups: dict[Any, list[dict[str, Any]]] = {}
    for change in found:
        if change[ACTION] != IGNORE:
            groups.setdefault((change[ROW], values(change, key)), []).append(change)
    kept, inserted, updated, deleted = dict(enumerate(file)), [], 0, 0
    for (position, _), group in groups.items():
        for one, other in pairwise(group):
            is_equal = one[ACTION] == other[ACTION] and (one[ACTION] != WRITE or one["n"] == other["n"])
            if rank(one, order) == rank(other, order) and not is_equal:
                return None
        action = group[-1][ACTION]
        if position is None:
            inserted += group[-1:] if action == WRITE else []
        elif action == FORCE_DELETE or rank(group[-1], order) >= rank(file[position], order):
            updated += action == WRITE
            deleted += action != WRITE
            kept[position] = group[-1] if action == WRITE else None
    rows = [one for one in kept.values() if one is not None] + inserted
    counted = {"updated": updated, "deleted": deleted, "inserted": len(inserted)}
    counted["ignored"] = len(found) - sum(counted.values())
    return rows, {name: count for name, count in counted.items() if count}


def split(batch: pa.RecordBatch, sizes: Sequence[int]) -> list[pa.RecordBatch]:
    bounds = [0]
    while bounds[-1] < batch.num_rows:
        bounds.append(bounds[-1] + sizes[len(bounds) % len(sizes)])
    return [batch.slice(start, end - start) for start, end in pairwise(bounds)]


sizes = st.lists(st.integers(1, 6), min_size=1, max_size=3)


@settings(max_examples=examples(300))
@given(merges(), sizes, sizes)
def test_the_result_is_that_of_a_plain_model(drawn, old_sizes, change_sizes):
    schema, key, order, file, found = drawn
    expected = model(key, order, file, found)
    batches = split(pa.RecordBatch.from_pylist(file, schema), old_sizes)
    merge = FileMerge(schema, FILE, batches, key=key, order_by=order)
    rows = []
    try:
        for batch in split(changes_of(schema, found), change_sizes):
            rows += merge.apply(batch)
        rows += merge.finish()
    except InvalidRequest:
        assert expected is None
        return
    assert expected is not None
    kept = [{name: one[name] for name in schema.names} for one in expected[0]]
    assert pa.Table.from_batches(rows, schema).equals(pa.Table.from_pylist(kept, schema))
    assert counts(merge) == expected[1]
