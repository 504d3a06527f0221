"""File sizing: the plan of which rows go to which file. Pure: no storage, no clock.

A job calls ``planning.plan``; task writers carry the plan out (``tasks``) and jobs commit it (``jobs``). Each policy is
a function of ``policies`` (``balanced_files``, ``hudi_files``) that ``planning.plan`` selects by
``SizingSettings.policy``.
"""

from tallymark.engine.sizing.plan import PlannedFile, SizingPlan
from tallymark.engine.sizing.profile import CommitSize, IncomingRows, Sample, WorkloadProfile
from tallymark.engine.sizing.tasks import tasks_of

__all__ = ["tasks_of", "PlannedFile", "SizingPlan", "CommitSize", "IncomingRows", "Sample", "WorkloadProfile"]
