"""Descriptors that the process may open: as many as the system allows it, half of them for connections."""

import resource
from contextlib import suppress
from dataclasses import replace

from tallymark.backends.events import EventLog
from tallymark.engine.rpc.server import DESCRIPTOR_SHARE
from tallymark.engine.serve.config import ServeConfig

DESCRIPTORS_MAX = 1 << 20
"""The most that is set: some systems allow more than a thousand million, for which others set aside memory."""

_events = EventLog(__name__)


def raise_descriptor_limit() -> int:
    """Raise the soft limit of open files (``ulimit -n``) to the hard one, and return it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = DESCRIPTORS_MAX if hard == resource.RLIM_INFINITY else min(hard, DESCRIPTORS_MAX)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with suppress(ValueError, OSError):  # a container may forbid what the limit allows
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
            return wanted
    return soft


def within_descriptors(config: ServeConfig, descriptors: int) -> ServeConfig:
    """Return the configuration with as many connections as the descriptors allow all listeners together."""
    jobs, hudi = config.jobs, config.hudi
    wanted = jobs.connection_count + jobs.driver_count + sum(each.settings.connection_count for each in hudi)
    allowed = int(DESCRIPTOR_SHARE * descriptors)
    if descriptors == resource.RLIM_INFINITY or wanted <= allowed:
        return config
    _events.warning("connections.limited", wanted=wanted, allowed=allowed, descriptors=descriptors)

    def share(count: int) -> int:
        return max(1, count * allowed // wanted)

    return replace(
        config,
        jobs=replace(jobs, connection_count=share(jobs.connection_count), driver_count=share(jobs.driver_count)),
        hudi=tuple(
            replace(each, settings=replace(each.settings, connection_count=share(each.settings.connection_count)))
            for each in hudi
        ),
    )
