"""Tables that are replaced beside their jobs, and markers that others have changed."""
