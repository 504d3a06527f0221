"""A URL as a message may repeat it: some hold keys, passwords or signatures, and messages are kept."""

import re

_PRIVATE = re.compile(r"(?<=//)[^/]*@|\?.*", re.DOTALL)


def shown(url: str) -> str:
    """The URL in quotes, with dots for what may be a secret: what stands before a host, and what follows a "?"."""
    return repr(_PRIVATE.sub("...", url))
