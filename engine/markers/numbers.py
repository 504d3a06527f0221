"""The numbers of one server's segments.

Owns: that no number is used twice, by this server or by another of the same instant; and that each number is greater
than those that this server has used before, and than all that it had found when it claimed its incarnation.
"""

import secrets
from collections.abc import Iterable

import anyio

from tallymark.backends.contract import Backend
from tallymark.backends.errors import AlreadyExists
from tallymark.engine.errors import CorruptObject
from tallymark.engine.markers.flush import until_answered
from tallymark.engine.markers.segment import (
    FIRST_INCARNATION,
    INCARNATION_LIMIT,
    SEQUENCE_COUNT,
    claim_name,
    segment_name,
)
from tallymark.engine.settings import MarkerSettings


class SegmentNumbers:
    """To be used after ``claim``."""

    def __init__(self, backend: Backend, folder: str, settings: MarkerSettings) -> None:
        self._backend = backend
        self._folder = folder
        self._settings = settings
        self._incarnation = 0
        self._sequence = 0
        self._claiming = anyio.Lock()
        self._objects: set[str] = set()
        self._lasting: set[str] = set()
        self.claim_put_s = 0.0
        """What the put of the last claim took that was answered; not its repeats, nor the claims that others had."""

    async def claim(self, incarnation: int) -> None:
        """Take this incarnation or the next one that no server had.

        Raises:
            FlushFailed: storage did not take a claim; asking again is safe.
            CorruptObject: none is left.
        """
        while incarnation < INCARNATION_LIMIT:
            path = f"{self._folder}/{claim_name(incarnation)}"
            self._objects.add(path)
            if await self._is_won(path):
                self._incarnation, self._sequence = incarnation, 0
                return
            incarnation += 1
        raise CorruptObject(
            f"{self._folder} has had {INCARNATION_LIMIT - FIRST_INCARNATION} servers, and no numbers are left; "
            "roll the instant back and start again"
        )

    async def next(self) -> str:
        """Return the path of a segment that no server has used. Whatever happens to its put, the number is spent.

        Raises what ``claim`` raises, where an incarnation's numbers are used up.
        """
        if self._sequence == SEQUENCE_COUNT:
            async with self._claiming:
                if self._sequence == SEQUENCE_COUNT:
                    await self.claim(self._incarnation + 1)
        self._sequence += 1
        path = f"{self._folder}/{segment_name(self._incarnation, self._sequence - 1)}"
        self._objects.add(path)
        return path

    @property
    def objects(self) -> frozenset[str]:
        """Every claim and segment that may lie in storage since this server has begun, or may come there yet."""
        return frozenset(self._objects)

    def unclear(self, path: str) -> None:
        """Record that a copy of its put may arrive at any time: whatever is deleted of it until then may be there in
        the end.
        """
        self._lasting.add(path)

    def deleted(self, paths: Iterable[str]) -> None:
        """Record that these are deleted."""
        self._objects.difference_update(set(paths) - self._lasting)

    async def _is_won(self, path: str) -> bool:
        nonce = secrets.token_bytes(16)

        async def put() -> bool:
            started = anyio.current_time()
            try:
                await self._backend.put_new(path, nonce)
                self.claim_put_s = anyio.current_time() - started
            except AlreadyExists:
                return await self._backend.get(path) == nonce  # by an earlier put, whose answer is missing
            return True

        return await until_answered(put, self._settings, path)
