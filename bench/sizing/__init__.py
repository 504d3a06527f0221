"""The question ``sizing``: how large do files become at write time, and what is rewritten for it?

    command        what it takes                     run            a whole run
    shape, shapes  what arrives, commit by commit    sides          who sizes, and how
    replay         the table that a plan a commit leads to, without a byte of Parquet
    frontier       what no policy can do better      speed          how long a plan takes
    answer, report, plot                             figures        what is read off the files that are left

These are arithmetic, and write no file; what Spark writes of the same shapes stands in ``written``.
"""
