"""Jobs of one process that share a ``Table``, and streams: what they commit at the same time is decided together."""
