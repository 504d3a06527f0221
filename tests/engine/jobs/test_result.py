"""What a write tells: printed, in a notebook, as JSON, and read from the log by somebody else."""

import json
from dataclasses import fields, replace

import pytest

from tallymark.engine.errors import CorruptObject
from tallymark.engine.jobs.result import WriteResult, shown_bytes
from tallymark.engine.timeline.outcome import Outcome
from tests.engine.jobs.scene import committed, table

RESULT = WriteResult(
    instant="20261121020304000",
    position=3,
    txn=None,
    is_rerun=False,
    rows=12345,
    bytes=3 << 20,
    files=4,
    partitions=2,
    removed_files=1,
    fences=0,
    marker_mode="batched",
    markers=4,
    direct_markers=0,
    marker_objects=1,
    puts=1,
    seconds=1.25,
    pending=None,
)


def test_a_result_prints_as_a_table_with_units():
    lines = str(RESULT).splitlines()
    assert lines[0] == "instant         20261121020304000"
    assert "rows            12,345" in lines
    assert "data            3.0 MiB" in lines
    assert lines[-1] == "duration        1.250 s"
    assert not any(line.startswith(("txn", "rerun", "pending")) for line in lines)
    assert "rows</th><td>12,345<" in RESULT._repr_html_()
    assert "pending" not in RESULT._repr_html_()


def test_a_rerun_and_what_is_pending_are_said():
    rerun = replace(RESULT, txn="etl:7", is_rerun=True, pending="not yet <projected>")
    assert "rerun           committed before; nothing was written" in str(rerun)
    assert str(rerun).endswith("pending         not yet <projected>")
    assert "<td>etl:7</td>" in rerun._repr_html_()
    assert "<td>not yet &lt;projected&gt;</td>" in rerun._repr_html_()


def test_json_holds_every_field_exactly():
    found = json.loads(RESULT.to_json())
    assert found == {field.name: getattr(RESULT, field.name) for field in fields(RESULT)}
    assert found["bytes"] == 3145728


def test_json_holds_what_the_commit_holds_and_what_only_its_reader_knows():
    known = {"position", "is_rerun", "pending", "catalog"}
    assert set(json.loads(RESULT.to_json())) == {*Outcome.__annotations__, *known}


SIZES = {0: "0 B", 1023: "1,023 B", 1024: "1.0 KiB", 3 << 19: "1.5 MiB", 5 << 30: "5.0 GiB", 5 << 40: "5.0 TiB"}


@pytest.mark.parametrize(("count", "shown"), SIZES.items())
def test_sizes_are_shown_in_binary_units(count, shown):
    assert shown_bytes(count) == shown


async def test_anybody_reads_the_result_of_a_write_from_the_log(unstaged):
    results = [await committed(unstaged.backend), await committed(unstaged.backend, "overwrite", {1: 9})]
    timeline = await table(unstaged.backend).timeline()
    assert [WriteResult.of(position, entry) for position, entry in timeline] == results


async def test_it_stands_in_the_commit_of_the_hudi_timeline_too(staged):
    result = await committed(staged.backend)
    projected = json.loads(staged.objects[f".hoodie/{result.instant}.commit"])["extraMetadata"]["tallymark.result"]
    assert json.loads(projected).items() <= json.loads(result.to_json()).items()


async def test_an_entry_that_does_not_tell_how_it_came_about_has_no_result(unstaged):
    await committed(unstaged.backend)
    [(position, entry)] = await table(unstaged.backend).timeline()
    with pytest.raises(CorruptObject, match="does not record"):
        WriteResult.of(position, replace(entry, summary=None))
