"""Storage that lists in pages, as object stores do, and lets others act between two of them."""

from collections.abc import AsyncIterator, Awaitable, Callable

from tallymark.backends.contract import Entry
from tallymark.backends.memory import MemoryBackend


class PagedBackend(MemoryBackend):
    """A listing asks for one page after another: the names after the last one it got, as they are at that moment."""

    def __init__(self, page_size: int) -> None:
        super().__init__()
        self.before_page: Callable[[], Awaitable[None]] | None = None
        """Called before each page of each listing is read."""
        self._page_size = page_size

    async def list(self, directory: str) -> AsyncIterator[Entry]:
        last = ""
        while True:
            if self.before_page:
                await self.before_page()
            names = super().list(directory)
            page = [entry async for entry in names if entry.path > last][: self._page_size]
            for entry in page:
                yield entry
            if len(page) < self._page_size:
                return
            last = page[-1].path
