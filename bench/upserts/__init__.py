"""The question ``upserts``: what does it take to replace rows by key, beside Delta's MERGE and Hudi's upsert?

    command     the command line         question    a whole run, its tables
    case        what is written          step        one write of a side to a copy of its table
    engine      the library by itself    worker      its process, and that of the floor
    memory      of one task              growth      a table that is a hundred times as large

Sides with Spark are those of ``bench/writes``. Spark is imported in their workers only.
"""
