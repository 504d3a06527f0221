"""Task attempts: Arrow batches in, marked and sized Parquet files out.

A job has a ``WriteTicket``. In any process, ``write_task`` turns batches into files and returns a ``TaskReport``, which
the job commits.
"""
