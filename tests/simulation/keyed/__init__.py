"""Tables with a record key, and writes by it."""
