"""Writes by record key: from the keys of a batch to the rows of the table that they replace or delete.

Path of a batch::

    key_task (keys of its rows, as segments) -> WriteJob.look_up -> locate_task (file and row of each key that is there)
        -> WriteJob.size -> routing -> write_task, which merges changes into their files -> WriteJob.commit
"""
