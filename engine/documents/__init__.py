"""JSON documents about a table: what the commands print as JSON, and what the REST interface answers."""
