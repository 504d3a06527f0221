"""Write jobs, from a request to a committed result.

The path of a write: ``table.write`` -> ``prepare`` -> ``instants.reserve`` -> ``maintenance.recovery`` of other
writers -> tasks -> ``write_job.commit``: seal and fence losers -> win the log entry -> ``instants.project`` ->
``instants.finish``. The alternative end is ``instants.rollback``.
"""
