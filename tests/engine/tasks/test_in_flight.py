"""Tickets and reports on their way between a job and its tasks, which may be of the release before or after."""

import pickle  # noqa: TID251, what Spark and process pools do
import zlib
from datetime import date
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tallymark.backends.options import StorageOptions
from tallymark.engine.errors import InvalidRequest
from tallymark.engine.packed import pack_checked, unpack_checked
from tallymark.engine.partitions.guard import PartitionGuard
from tallymark.engine.partitions.static import StaticPartition
from tallymark.engine.rpc.handshake import ServiceAddress
from tallymark.engine.settings import TaskSettings, ViewSettings
from tallymark.engine.tasks.report import Fill, TaskReport
from tallymark.engine.tasks.ticket import WriteTicket
from tallymark.engine.timeline.entry import DataFile

texts = st.text(st.characters(exclude_categories=["Cs"]))
counts = st.integers(0, 2**63)
seconds = st.floats(0, 1e9)
files = st.builds(DataFile, texts, texts, counts, counts, counts, counts)
fills = st.builds(Fill, files, st.lists(texts).map(tuple))
reports = st.builds(
    TaskReport,
    instant=texts,
    task=counts,
    attempt=counts,
    files=st.lists(files).map(tuple),
    unused=st.lists(texts).map(tuple),
    fills=st.lists(fills).map(tuple),
    planned=st.lists(st.tuples(texts, counts)).map(tuple),
    direct_markers=counts,
    marker_wait_s=seconds,
    seconds=seconds,
)
partitions = st.builds(
    lambda values: StaticPartition(tuple(f"c{place}" for place in range(len(values))), tuple(values)),
    st.lists(
        st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | texts | st.dates() | st.decimals(-9, 9, places=3)
    ),
)
tickets = st.builds(
    WriteTicket,
    url=texts,
    options=st.builds(
        StorageOptions,
        endpoint=st.none() | texts,
        path_style=st.none() | st.booleans(),
        hadoop=st.lists(st.tuples(st.just("dfs.nameservices"), texts)).map(tuple),
        connect_timeout_s=st.floats(0.1, 1e9),
    ),
    instant=texts,
    base=counts,
    schema=st.just(
        pa.schema([pa.field("a", pa.int64(), nullable=False, metadata={"PARQUET:field_id": "1"})], {"k": "v"})
    ),
    partition_by=st.lists(texts).map(tuple),
    staging=texts,
    marker_kind=st.sampled_from(["batched", "direct"]),
    service=st.none() | st.builds(ServiceAddress, texts, counts, st.binary()),
    settings=st.builds(TaskSettings, compression=st.just("none"), row_group_bytes=st.integers(1, 2**40)),
    max_file_bytes=counts,
    partition=st.none() | partitions,
    guard=st.none() | st.builds(PartitionGuard, st.lists(partitions).map(tuple)),
    table=texts,
    base_hash=texts,
    views=st.builds(ViewSettings, folder=st.none() | texts),
    is_committed=st.booleans(),
)

FILE = DataFile("month=1", "a-0_0-1-2_20260102030405006.parquet", 3, 456, 7, 8)
REPORT = TaskReport(instant="20260102030405006", task=7, attempt=2, files=(FILE,), fills=(Fill(FILE, ("b",)),))
TICKET = WriteTicket(
    url="memory:",
    options=StorageOptions(),
    instant=REPORT.instant,
    base=1,
    schema=pa.schema({"flight": pa.int64()}),
    partition_by=("day", "price"),
    staging="staged",
    marker_kind="batched",
    service=ServiceAddress("host", 1, b"key of the job"),
    settings=TaskSettings(),
    max_file_bytes=1,
    partition=StaticPartition(("day", "price"), (date(2026, 1, 2), Decimal("1.20"))),
)


@settings(deadline=None)
@given(reports | tickets)
def test_a_ticket_or_report_survives_its_bytes_and_its_pickle(value):
    assert type(value).decode(value.encode()) == value
    assert pickle.loads(pickle.dumps(value)) == value
    if isinstance(value, WriteTicket):
        assert value.decode(value.encode()).schema.equals(value.schema, check_metadata=True)
        assert repr(value.decode(value.encode()).partition) == repr(value.partition), "True is not 1"
    else:
        rewritten = sum(fill.old.rows for fill in value.fills)
        assert value.rows == sum(file.rows for file in value.files) - rewritten


@pytest.mark.parametrize("value", [REPORT, TICKET], ids=["report", "ticket"])
def test_no_flipped_bit_and_no_shorter_bytes_decode(value):
    data = value.encode()
    assert data in pickle.dumps(value), "a pickle contains them as they are"
    damaged = [data[:size] for size in range(len(data))] + [b"", b"\xc1", b"\x01", data + b"\0"]
    for bit in range(8 * len(data)):
        flipped = bytearray(data)
        flipped[bit // 8] ^= 1 << bit % 8
        damaged.append(bytes(flipped))
    for bad in damaged:
        with pytest.raises(InvalidRequest, match=r"of a task is damaged on its way: .*; run the task again"):
            value.decode(bad)


@pytest.mark.parametrize(("value", "magic"), [(REPORT, b"TMRP"), (TICKET, b"TMTK")], ids=["report", "ticket"])
def test_what_a_later_release_has_added_is_ignored_and_what_an_earlier_one_lacks_is_the_default(value, magic):
    fields = unpack_checked(magic, value.encode())
    assert value.decode(pack_checked(magic, {**fields, "later": [1]})) == value
    optional = {"planned", "seconds", "direct_markers"} if value is REPORT else {"views", "is_committed", "guard"}
    assert value.decode(pack_checked(magic, {k: v for k, v in fields.items() if k not in optional})) == value
    if value is TICKET:
        nested = {name: {**fields[name], "later": 1} for name in ("options", "service", "settings", "views")}
        assert value.decode(pack_checked(magic, {**fields, **nested})) == value
    for bad in ({**fields, "instant": None, "format": 99}, {"format": 99}):
        with pytest.raises(InvalidRequest, match=r"is of format 99, and this release reads format \d"):
            value.decode(pack_checked(magic, bad))
    with pytest.raises(InvalidRequest, match="has fields of no release"):
        value.decode(pack_checked(magic, {"format": fields["format"]}))
    with pytest.raises(InvalidRequest, match="not a map"):
        value.decode(magic + zlib.crc32(b"\x01").to_bytes(4, "little") + b"\x01")
