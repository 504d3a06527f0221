"""The task level: Arrow batches in, marked and sized Parquet files out.

A job hands out a ``WriteTicket``; ``write_task`` turns batches into files in any process, and answers with a
``TaskReport`` that the job commits.
"""

from tallymark.engine.files.partition_path import partition_path
from tallymark.engine.files.profile_batches import profile_batches
from tallymark.engine.files.report import TaskReport
from tallymark.engine.files.task_writer import write_task
from tallymark.engine.files.ticket import WriteTicket

__all__ = ["WriteTicket", "write_task", "TaskReport", "partition_path", "profile_batches"]
