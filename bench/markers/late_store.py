"""A store in memory whose puts take as long as they are told."""

import anyio

from tallymark.backends.memory import MemoryBackend
from tallymark.bench.markers.put_time import PutTime


class LateStore(MemoryBackend):
    """Puts land at the end of their time. All else is immediate."""

    def __init__(self, put_time: PutTime) -> None:
        super().__init__()
        self.put_time = put_time
        """May be changed at any time."""
        self.put_count = 0
        """Puts-if-absent that were answered."""
        self.put_total_s = 0.0
        """Time that these took together."""
        self.line_count = 0
        """Lines that they wrote."""
        self.line_total_s = 0.0
        """Time that the puts of these took, each line counted."""

    async def put_new(self, path: str, data: bytes) -> None:
        begun = anyio.current_time()
        await anyio.sleep(self.put_time())
        await super().put_new(path, data)
        took_s = anyio.current_time() - begun
        self.put_count += 1
        self.put_total_s += took_s
        self.line_count += (lines := data.count(b"\n"))
        self.line_total_s += lines * took_s
