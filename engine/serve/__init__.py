"""What programs other than the tasks of a job ask for: markers of the writers of Hudi."""
