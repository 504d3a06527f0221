"""The kinds of sides, as they are chosen."""

KINDS = ("ours", "hudi", "delta", "listing")
