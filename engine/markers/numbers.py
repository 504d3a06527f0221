"""The numbers of one server's segments.

Owns: no number is used twice, by this server or another of the same instant; and each number is greater than those that
this server has used before, and than all that it had found when it claimed its incarnation.
"""

import secrets
from collections.abc import Iterable

import anyio

from tallymark.backends.contract import Backend
from tallymark.backends.errors import AlreadyExists, NotFound
from tallymark.backends.unanswered import unanswered_puts_of
from tallymark.engine.errors import CorruptObject, ServiceUnavailable
from tallymark.engine.markers.flush import until_answered
from tallymark.engine.markers.segment import (
    FIRST_INCARNATION,
    INCARNATION_LIMIT,
    SEQUENCE_COUNT,
    claim_name,
    segment_name,
)
from tallymark.engine.settings import MarkerSettings

UNCLEAR_MAX = 8
"""Claims that a server puts until the put of one was sent once, where acks rely on it. Of a store that leaves a tenth
of its puts without an answer, that many fail once in a hundred million.
"""


class SegmentNumbers:
    """Numbers of one server; usable after ``claim``, or at once by the only server that an instant has."""

    def __init__(self, backend: Backend, folder: str, settings: MarkerSettings, *, checks_claim: bool = False) -> None:
        """``checks_claim``: acks rely on ``are_held``."""
        self._backend = backend
        self._checks_claim = checks_claim
        self._unanswered = unanswered_puts_of(backend)
        self._reached = 0
        """The incarnation after the last one that this server has tried."""
        self._folder = folder
        self._settings = settings
        self._incarnation = FIRST_INCARNATION
        self._sequence = 0
        self._claiming = anyio.Lock()
        self._claim: tuple[str, bytes] | None = None
        """Path and content of the first claim. A process that overwrites or deletes the claims reads the segments after
        that, and has not started to while this one is as it was, whatever was claimed since.
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
            ServiceUnavailable: acks rely on claims, and each put of one had to be repeated.
            CorruptObject: none is left.
        """
        unclear, incarnation = 0, max(incarnation, self._reached)
        while incarnation < INCARNATION_LIMIT:
            path = f"{self._folder}/{claim_name(incarnation)}"
            self._objects.add(path)
            self._reached = incarnation + 1
            won, is_clear = await self._is_won(path)
            if won is not None and (is_clear or not self._checks_claim):
                self._claim = self._claim or won
                if incarnation != self._incarnation:
                    self._incarnation, self._sequence = incarnation, 0
                return
            incarnation += 1
            unclear += not is_clear
            if unclear == UNCLEAR_MAX:
                raise ServiceUnavailable(
                    f"storage has not answered {UNCLEAR_MAX} puts in {self._folder} at once, and they may arrive "
                    "again; put markers directly, or retry"
                )
        raise CorruptObject(
            f"{self._folder} has had {INCARNATION_LIMIT - FIRST_INCARNATION} servers, and no numbers are left; "
            "roll the instant back and start again"
        )

    async def are_held(self) -> bool:
        """Return whether storage still has the first claim: it is overwritten before an instant's markers are read at
        its end, or deleted with the directory, and a later server may then have claimed the same incarnation. Raises
        BackendError.
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

    async def _is_won(self, path: str) -> tuple[tuple[str, bytes] | None, bool]:
        """Return the claim, or None if it is another's; and whether its put was sent once, so that no copy of it can
        arrive when the claim is gone.
        """
        nonce = secrets.token_bytes(16)
        unanswered, puts = self._unanswered(), 0

        async def put() -> bool:
            nonlocal puts
            puts += 1
            started = anyio.current_time()
            try:
                await self._backend.put_new(path, nonce)
                self.claim_put_s = anyio.current_time() - started
            except AlreadyExists:
                return await self._backend.get(path) == nonce  # by an earlier put, whose answer is missing
            return True

        is_won = await until_answered(put, self._settings, path)
        return ((path, nonce) if is_won else None), puts == 1 and self._unanswered() == unanswered
