"""Upserts and deletes of a DataFrame's rows by key, in a few Spark jobs.

Path of the rows, which Spark computes twice, for their keys and for the tasks::

    rows (keys) -> stage (key task) -> WriteJob.look_up -> stage (lookup task) -> WriteJob.size -> shares -> routing
        -> stage (task of changes) -> WriteJob.commit
"""
