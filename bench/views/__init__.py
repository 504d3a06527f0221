"""The question ``views``: how long until somebody knows which files a partition holds, and what does it take to know?

    command        what it takes                     run            a whole run
    table, ground  many files as metadata only       question       what is asked
    side, sides    who answers: held_side is a view in a process, served_side a job's service, far_side a far store,
                   hudi_side Hudi's timeline server, listing_sides no view at all
    kinds          how they are chosen
    schedule       when an open loop asks            load           what its callers saw, ``latency`` in figures
    answer, report, plot

Programs of processes of their own: ``caller`` asks through a ``door``, ``holder`` holds a view (``held``), ``server``
is a driver; ``child`` is their parent's end.
"""
