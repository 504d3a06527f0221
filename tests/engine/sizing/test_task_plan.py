from tallymark.engine.sizing.plan import PlannedFile
from tallymark.engine.sizing.task_plan import decode_task_plan, encode_task_plan
from tallymark.engine.timeline.entry import DataFile


def test_planned_files_come_back_as_they_went():
    small = DataFile("month=1/tail=🦆", "f_1_2.parquet", 3, 4, 5, 6)
    files = (
        PlannedFile("month=1/tail=🦆", 10, 20, small),
        PlannedFile("", 2**40, 2**50),
        PlannedFile("a", 0, 1, small, 7),
    )
    assert decode_task_plan(encode_task_plan(files)) == files
    assert decode_task_plan(encode_task_plan(())) == ()
