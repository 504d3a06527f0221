"""The numbers of one server's segments.

Owns: no number is used twice, by this server or another of the same instant; and each number is greater than those that
this server has used before, and than all that it had found when it claimed its incarnation.
"""

import secrets
from collections.abc import Iterable

import anyio

from tallymark.backends.contract import Backend
from tallymark.backends.errors import AlreadyExists, NotFound
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
    """Numbers of one server; usable after ``claim``."""

    def __init__(self, backend: Backend, folder: str, settings: MarkerSettings) -> None:
        self._backend = backend
        self._folder = folder
        self._settings = settings
        self._incarnation = 0
        self._sequence = 0
        self._claiming = anyio.Lock()
        self._claim: tuple[str, bytes] | None = None
        """Path and content of the first claim. A process that deletes the claims reads the segments after that, and has
        not started to while this one exists, whatever was claimed since.
        """
        self._objects: set[str] = set()
        self._lasting: set[str] = set()
        self.claim_put_s = 0.0
        """Duration of the put of the last answered claim, without its repeats and without claims that other servers had
        won.
        """

    async def claim(self, incarnation: int) -> None:
        """Claim this incarnation, or the next one that no server has claimed.

        Raises:
            FlushFailed: storage did not accept a claim; retrying is safe.
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

    async def are_held(self) -> bool:
        """Return whether storage still has the first claim: it is deleted with the directory, or before an instant's
        markers are read at its end, and a later server may then have claimed the same incarnation. Raises BackendError.
        """
        assert self._claim is not None, "claim comes first"
        path, nonce = self._claim
        try:
            return await self._backend.get(path) == nonce
        except NotFound:
            return False

    async def next(self) -> str:
        """Return the path of a segment that no server has used. The number is spent, whatever the outcome of its put.

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
        """Return every claim and segment that this server has put or may have put, and that was not deleted."""
        return frozenset(self._objects)

    def unclear(self, path: str) -> None:
        """Record that a copy of its put may arrive at any time: even after a deletion the object may exist in
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

        is_won = await until_answered(put, self._settings, path)
        if is_won and self._claim is None:
            self._claim = path, nonce
        return is_won
