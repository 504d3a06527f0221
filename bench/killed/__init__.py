"""The question ``killed``: what is left behind when an executor, or a whole job, is killed in the middle of a write?

    command        what it takes                 run            one side after the other
    folder         what lies in a table's folder
    answer, report what was found, and a table of it

Sides, sessions and workers are those of ``writes``.
"""
