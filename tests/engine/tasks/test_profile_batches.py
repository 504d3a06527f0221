"""A profile counts the rows and bytes of each partition as their files will, whatever the batches."""

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tallymark.engine.errors import InvalidRequest
from tallymark.engine.sizing import IncomingRows, WorkloadProfile
from tallymark.engine.sizing.profile import FileUpdates
from tallymark.engine.tasks.profile_batches import profile_batches
from tallymark.engine.timeline.entry import DataFile
from tests.engine.tasks.scene import FLIGHTS, flights, memory, ticket, write

rows = st.lists(st.tuples(st.integers(1, 4), st.none() | st.text(max_size=9)), max_size=40)


def batch_of(found: list[tuple[int, str | None]]) -> pa.RecordBatch:
    flown = [{"flight": number, "origin": origin, "month": month} for number, (month, origin) in enumerate(found)]
    return pa.RecordBatch.from_pylist(flown, schema=FLIGHTS)


@given(st.lists(rows, max_size=5), st.sampled_from([(), ("month",)]))
def test_it_is_what_the_files_of_a_task_tell_and_what_the_profiles_of_its_parts_make(batches, columns):
    job, given_rows = ticket(FLIGHTS, *columns), [batch_of(found) for found in batches]
    profile = profile_batches(job, given_rows)
    parts = WorkloadProfile.of(profile_batches(job, pa.Table.from_batches([batch])) for batch in given_rows)
    report = write(job, given_rows, memory(has_staging=False))
    told = {file.partition: (file.rows, file.plain_bytes) for file in report.files}
    assert {found.partition: (found.rows, found.plain_bytes) for found in profile.incoming} == told
    assert sorted(parts.incoming, key=str) == sorted(profile.incoming, key=str)
    assert told or profile == WorkloadProfile(incoming=())


def test_parts_of_which_one_was_not_measured_are_not_measured():
    measured, other = IncomingRows("month=1", 2, 20), IncomingRows("month=1", 3)
    whole = WorkloadProfile.of([WorkloadProfile(incoming=(measured,)), WorkloadProfile(incoming=(other,))])
    assert whole.incoming == (IncomingRows("month=1", 5, None),)


def test_updates_of_one_file_in_several_parts_are_added_up():
    one, other = (DataFile("month=1", name, 10, 100) for name in "ba")
    parts = [
        WorkloadProfile(incoming=(), updates=(FileUpdates(one, 2, 20), FileUpdates(other, 1))),
        WorkloadProfile(incoming=(), updates=(FileUpdates(one, 3, 30), FileUpdates(other, 1, 10))),
    ]
    assert WorkloadProfile.of(parts).updates == (FileUpdates(other, 2), FileUpdates(one, 5, 50))


def test_the_sample_is_of_the_first_rows_and_bounded():
    job = ticket(FLIGHTS, "month", row_group_bytes=1000)
    sample = profile_batches(job, (flights(range(10)) for _ in range(1000))).sample
    assert sample is not None
    assert 10 <= sample.rows <= 100
    assert sample.encoded_bytes > 0


def test_rows_that_the_table_does_not_take_are_refused():
    with pytest.raises(InvalidRequest, match="origin"):
        profile_batches(ticket(FLIGHTS, "month"), [flights([1]).drop_columns("origin")])
