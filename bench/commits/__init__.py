"""Question ``commits``: how many commits a second, and how long each takes, beside deltalake and pyiceberg.

    command      the command line, and the names of the parts
    question     the places, and each part at each of them
    sides        one writer of each format, as the load generator drives it
    measure      one load on one new table, and the row that it becomes

    one_append   part: a single writer, in times of what storage takes
    writers      part: independent writers, each with its own table object
    one_table    part: many callers of one ``Table`` of one process
    stream       part: many callers of one ``Table.stream``, beside a model of their acks
    day          part: objects beside data files, over the commits of a day

A part is a module with ``tables(ground)``; its name is in ``command.PARTS`` and in ``question.MEASURED``.
"""
