"""The question ``sizing``, measured: the same shapes, small enough for one machine, written by Spark to a local disk.

    case, source   what is written: loads of Parquet files, one append each
    sides          who writes                        turn           a side in a case, and what it leaves
    folder         the data files of a table, and those that are new
    run            one append of each side in turn   answer, report what came out, and tables of it
    fill           the memory that one task takes to fill a large file, in a process of its own

Sessions and workers are those of ``writes``.
"""
