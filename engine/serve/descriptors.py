"""Descriptors that the process may open: as many as the system allows it."""

import resource

DESCRIPTORS_MAX = 1 << 20
"""The most that is set: some systems allow more than a thousand million, for which others set aside memory."""


def raise_descriptor_limit() -> int:
    """Raise the soft limit of open files (``ulimit -n``) to the hard one, and return it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = DESCRIPTORS_MAX if hard == resource.RLIM_INFINITY else min(hard, DESCRIPTORS_MAX)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        return wanted
    return soft
