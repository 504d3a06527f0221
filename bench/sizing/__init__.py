"""Question ``sizing``: how large files become at write time, and what is rewritten for it.

question         plans in arithmetic, and their tables      command     the command line
shape, shapes    what arrives, commit by commit             replay      the table that the plans lead to
figures          what is read from the files                frontier    the exact solver for equal appends
written          the same shapes appended by Spark          written_case, source    what is appended
fill             the memory of a task that fills a large file
"""
