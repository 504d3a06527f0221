"""Write jobs, from a request to a committed result."""
