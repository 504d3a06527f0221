"""Changes of single rows: where the table has the rows that a write updates or deletes, by their key or by a predicate.

Path of a batch::

    key_task (keys of its rows, as segments) -> WriteJob.look_up -> locate_task (file and row of each key that is there)
        -> WriteJob.size -> routing -> write_task, which merges changes into their files -> WriteJob.commit

A predicate (``where``) takes the same path without a batch, from ``WriteJob.look_up`` on.
"""
