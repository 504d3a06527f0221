import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

import pyarrow as pa
import pytest

from tallymark.engine.timeline.entry import DataFile, LogEntry, decode_entry, encode_entry
from tallymark.engine.timeline.projection import ProjectedFile, floor_files, projected_files
from tallymark.engine.timeline.properties import TableProperties
from tallymark.engine.timeline.scope import Scope
from tallymark.engine.timeline.summary import WriteSummary
from tests.engine.timeline.entries import SUMMARY

T = "20261102030405678"
COLUMNS: dict[str, pa.DataType] = {"id": pa.int64(), "dt": pa.string()}
SCHEMA = pa.schema(COLUMNS)
PROPERTIES = TableProperties(name="t", partition_by=("dt",), schema=SCHEMA, created="20261101000000000")
A = DataFile("dt=a", f"f1-0_0-0-0_{T}.parquet", rows=2, bytes=900)
B = DataFile("dt=b", f"f2-0_0-0-0_{T}.parquet", rows=1, bytes=800)
A2 = DataFile("dt=a", f"f3-0_0-0-0_{T}.parquet", rows=1, bytes=800)
OLD = DataFile("dt=a", "f0-0_0-0-0_20261101000000001.parquet", rows=3, bytes=700)
BELOW = Scope(prefixes=frozenset({"month=1"}))
PART = Scope(partitions=frozenset({"dt=a"}))


def append(*added: DataFile) -> LogEntry:
    return LogEntry(kind="commit", instant=T, nonce="n1", base=0, operation="append", added=added)


def overwrite(scope: Scope, *removed: DataFile) -> LogEntry:
    return LogEntry(
        kind="commit", instant=T, nonce="n1", base=0, operation="overwrite", scope=scope, added=(A,), removed=removed
    )


def project(entry: LogEntry, *new_partitions: str) -> tuple[ProjectedFile, ...]:
    return projected_files(entry, PROPERTIES, new_partitions=new_partitions)


def paths(files: Sequence[ProjectedFile]) -> list[str]:
    return [file.path for file in files]


def metadata(files: Sequence[ProjectedFile]) -> Any:
    return json.loads(files[-1].data)


@pytest.mark.parametrize(
    ("entry", "endings"),
    [
        (append(B, A), ["commit.requested", "inflight", "commit"]),
        (overwrite(PART), ["replacecommit.requested", "replacecommit.inflight", "replacecommit"]),
    ],
    ids=["append", "overwrite"],
)
def test_a_commit_is_described_requested_inflight_and_completed_in_that_order(
    entry: LogEntry, endings: list[str]
) -> None:
    described = ["dt=a/.hoodie_partition_metadata", "dt=b/.hoodie_partition_metadata"]
    assert paths(project(entry, "dt=b", "dt=a")) == described + [f".hoodie/{T}.{ending}" for ending in endings]


@pytest.mark.parametrize("operation", ["rollback", "clean"])
def test_a_rollback_and_a_clean_project_nothing(operation: Literal["rollback", "clean"]) -> None:
    assert project(LogEntry(kind=operation, instant=T, nonce="n", base=0, operation=operation), "dt=a") == ()


def test_a_requested_file_is_empty_and_an_inflight_one_names_the_operation() -> None:
    requested, inflight, _ = project(append(A))
    assert requested.data == b""
    assert json.loads(inflight.data) == {
        "partitionToWriteStats": {},
        "compacted": False,
        "extraMetadata": {},
        "operationType": "INSERT",
    }


def test_a_commit_lists_its_files_by_partition_with_rows_and_bytes_and_carries_schema_and_nonce() -> None:
    found = metadata(project(append(B, A)))
    assert list(found["partitionToWriteStats"]) == ["dt=a", "dt=b"]
    (stat,) = found["partitionToWriteStats"]["dt=a"]
    facts = ("fileId", "path", "partitionPath", "prevCommit", "numWrites", "numInserts", "fileSizeInBytes")
    assert [stat[key] for key in facts] == ["f1-0", A.path, "dt=a", "null", 2, 2, 900]
    assert found["extraMetadata"] == {"schema": PROPERTIES.avro_schema(), "tallymark.nonce": "n1"}
    assert "partitionToReplaceFileIds" not in found


def test_a_commit_carries_its_txn_and_its_result_as_text() -> None:
    told = replace(overwrite(PART, OLD), txn="étl:7", summary=WriteSummary.of_fields(SUMMARY))
    extra = metadata(project(told))["extraMetadata"]
    assert extra["tallymark.txn"] == "étl:7"
    assert json.loads(extra["tallymark.result"]) == {
        "instant": T,
        "txn": "étl:7",
        "rows": 2,
        "bytes": 900,
        "files": 1,
        "partitions": 1,
        "removed_files": 1,
        "fences": 0,
        **SUMMARY,
    }
    assert all(isinstance(value, str) for value in extra.values()), "Hudi's extra metadata are texts"


@pytest.mark.parametrize(
    ("scope", "operation"),
    [(PART, "INSERT_OVERWRITE"), (BELOW, "INSERT_OVERWRITE"), (Scope(is_all=True), "INSERT_OVERWRITE_TABLE")],
)
def test_an_overwrite_names_its_scope_and_the_file_ids_it_replaces(scope: Scope, operation: str) -> None:
    found = metadata(project(overwrite(scope, OLD)))
    assert found["operationType"] == operation
    assert found["partitionToReplaceFileIds"] == {"dt=a": ["f0-0"]}


def test_the_bytes_do_not_depend_on_who_projects_and_in_what_order_it_learnt_the_files() -> None:
    entry = overwrite(Scope(is_all=True), OLD, A2, B)
    again = decode_entry(encode_entry(entry), source="here")
    reordered = overwrite(Scope(is_all=True), B, A2, OLD)
    assert (
        project(entry, "dt=a", "dt=b") == project(again, "dt=b", "dt=a", "dt=a") == project(reordered, "dt=a", "dt=b")
    )


@pytest.mark.parametrize(
    ("partition", "path", "depth"),
    [("", ".hoodie_partition_metadata", 0), ("y=1/m=2", "y=1/m=2/.hoodie_partition_metadata", 2)],
)
def test_the_metadata_of_a_partition_tells_its_depth_and_first_commit(partition: str, path: str, depth: int) -> None:
    described = project(append(), partition)[0]
    assert described.path == path
    assert described.data.decode() == (
        f"#partition metadata\n#2026-11-02T03:04:05.678+00:00\ncommitTime={T}\npartitionDepth={depth}\n"
    )


def test_the_floor_is_an_empty_commit_with_a_schema_below_all_others() -> None:
    files = floor_files(PROPERTIES)
    floor = ".hoodie/19700101000000000"
    assert paths(files) == [f"{floor}.commit.requested", f"{floor}.inflight", f"{floor}.commit"]
    assert metadata(files)["partitionToWriteStats"] == {}
    assert metadata(files)["extraMetadata"] == {"schema": PROPERTIES.avro_schema()}
