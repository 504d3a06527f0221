"""``tallymark serve`` as whole processes that are killed."""
