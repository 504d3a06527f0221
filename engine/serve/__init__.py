"""What programs other than the tasks of a job ask for: markers of the writers of Hudi, commits of other drivers,
pages and REST.
"""
