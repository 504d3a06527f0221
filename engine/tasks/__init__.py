"""Task attempts: Arrow batches in, marked and sized Parquet files out.

A job hands out a ``WriteTicket``. ``write_task`` turns batches into files in any process and returns a ``TaskReport``,
which the job commits.
"""
