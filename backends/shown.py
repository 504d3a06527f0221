"""URLs in messages: some contain keys, passwords or signatures, and messages are kept."""

import re

_PRIVATE = re.compile(r"(?<=//)[^/]*@|\?.*", re.DOTALL)


def shown(url: str) -> str:
    """Return the URL in quotes, with dots for possible secrets: the text before a host, and after a "?"."""
    return repr(_PRIVATE.sub("...", url))
