"""The driver's service and its client: markers and lookups over one authenticated connection."""
