"""Lookups of a job's tasks: the table's files at the job's base position, from the service or the log."""
