"""Reader of a table's checkpoints: the base of its log, and the rows up to there.

Owns: which checkpoint is the newest readable one, and that an unreadable one costs only time. Does not own: the format
(``checkpoint_format``), whether a checkpoint is of this log (``CommitLog``), and writing (``checkpoint_writer``).
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from tallymark.backends.contract import Backend
from tallymark.backends.errors import NotFound
from tallymark.backends.events import EventLog
from tallymark.engine.errors import CorruptObject, TryAgain
from tallymark.engine.lazy import Lazy
from tallymark.engine.timeline.history import History
from tallymark.engine.timeline.history_base import HistoryBase
from tallymark.engine.timeline.listing import read_listing
from tallymark.engine.timeline.log import read_entries
from tallymark.engine.views.base import NoBase, PartitionState, ViewBase
from tallymark.engine.views.checkpoint_format import POINTER, Manifest, decode_manifest, decode_part, decode_pointer
from tallymark.engine.views.part_plan import part_of
from tallymark.engine.views.view import View

_events = EventLog(__name__)


@dataclass(slots=True)
class CheckpointStatistics:
    """A reading of the counters."""

    position: int = 0
    """The position at which the log starts for this reader; 0 where it was read whole."""
    refused: int = 0
    """Checkpoints, or pointers to them, that were damaged, of another log or of a newer format."""
    damaged_parts: int = 0
    """Parts that could not be read: their rows were gathered from the log."""


class Checkpoints:
    """A ``LogStart``, and the base of views. Belongs to one event loop."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._base: CheckpointBase | None = None
        self._named: tuple[str, ...] = ()
        """Names in the pointer, as it was read last."""
        self._foreign: set[str] = set()
        """Names of manifests of another log."""
        self.statistics = CheckpointStatistics()
        self.is_damaged = False
        """Whether damage was found since the last checkpoint was written, which a new one would replace."""

    @property
    def base(self) -> ViewBase:
        """The base of a view of the log that was read from there on."""
        return NoBase() if self._base is None else self._base

    @property
    def manifest(self) -> Manifest | None:
        return None if self._base is None else self._base.manifest

    async def newest(self, listed: Sequence[str] = (), *, table: str = "") -> HistoryBase | None:
        """Return the base of the newest checkpoint; None where there is none that can be read.

        Where both manifests of the pointer are missing, it is read again: other writers may have replaced them since.
        With ``listed``, names of manifests in descending order, those of ``table`` are tried first: the pointer is
        unreadable or late.
        """
        tried: set[str] = set()
        for name in listed:
            manifest = await self.read(name)
            if manifest is not None and (not table or manifest.history.table == table):
                self.start_at(manifest)
                return manifest.history
        while names := [name for name in await self.pointer() if name not in tried]:
            for name in names:
                tried.add(name)
                if (manifest := await self.read(name)) is not None:
                    self.start_at(manifest)
                    return manifest.history
        return None

    async def base_of(self, name: str) -> HistoryBase | None:
        manifest = await self.read(name, is_needed=False)
        return None if manifest is None else manifest.history

    def refuse(self, reason: str) -> None:
        assert self._base is not None, "what was not given cannot be refused"
        self._foreign.add(self._base.manifest.name)
        self._refused(self._base.manifest.path, reason)
        self._base = None
        self.statistics.position = 0

    def start_at(self, manifest: Manifest) -> "CheckpointBase":
        """Set ``base`` to this one."""
        self._base = CheckpointBase(self._backend, manifest, self._lost)
        self.statistics.position = manifest.position
        return self._base

    async def pointer(self) -> tuple[str, ...]:
        """Return the names of the newest manifest and the one before; none where there are none, or they are
        unknown.
        """
        named: tuple[str, ...] = ()
        try:
            named = decode_pointer(await self._backend.get(POINTER))
        except NotFound:
            pass
        except CorruptObject as error:
            self._refused(POINTER, error)
        self._named = named
        return named

    def is_late(self, listed: Sequence[str]) -> bool:
        """Return whether one of the names that were read last is not listed, and a newer one than both is: the writer
        of a pointer deletes only manifests that neither it nor the one before names.
        """
        named = self._named
        return bool(named and listed) and listed[0] > named[0] and not set(named) <= set(listed)

    async def read(self, name: str, *, is_needed: bool = True) -> Manifest | None:
        """Return the manifest of this name; None where it is missing or unreadable, which is logged and counted where
        it is needed, or where it is of another log.

        A missing one is damage only where the pointer still names it: otherwise other writers have put newer ones.
        """
        if name in self._foreign:
            return None
        path = Manifest.path_of(name)
        try:
            return decode_manifest(await self._backend.get(path), name=name)
        except (CorruptObject, NotFound) as error:
            if is_needed and not await self._was_replaced(name, path, error):
                self._refused(path, error)
            return None

    async def _was_replaced(self, name: str, path: str, error: Exception) -> bool:
        """Return whether this object of the manifest ``name`` is missing because newer checkpoints have replaced it.

        A pointer that still names it may be a put that arrived once more.
        """
        if not isinstance(error, NotFound):
            return False
        if name in await self.pointer() and not self.is_late((await read_listing(self._backend)).manifests):
            return False
        _events.info("checkpoint.refused", url=self._backend.url, path=path, reason=error)
        return True

    def _refused(self, path: str, reason: Exception | str) -> None:
        self.statistics.refused += 1
        self._log_damage(path, reason)

    async def _lost(self, name: str, path: str, reason: Exception) -> bool:
        if await self._was_replaced(name, path, reason):
            return True
        self.statistics.damaged_parts += 1
        self._log_damage(path, reason)
        return False

    def _log_damage(self, path: str, reason: Exception | str) -> None:
        self.is_damaged = True
        _events.warning("checkpoint.refused", url=self._backend.url, path=path, reason=reason)


class CheckpointBase:
    """A ``ViewBase``: reads the part that contains a partition. If one cannot be read, the log supplies all rows."""

    def __init__(
        self, backend: Backend, manifest: Manifest, lost: Callable[[str, str, Exception], Awaitable[bool]]
    ) -> None:
        """``lost`` is called with the name of the manifest, a part that cannot be read, and the reason. It returns
        whether newer checkpoints have replaced that.
        """
        self._backend = backend
        self._lost = lost
        self._reading: dict[str, Lazy[dict[str, bytes]]] = {}
        """Parts that are being read."""
        self._logged = Lazy(self._from_log)
        self._is_damaged = False
        self._is_replaced = False
        self.manifest = manifest

    @property
    def position(self) -> int:
        return self.manifest.position

    @property
    def floor(self) -> int:
        return self.manifest.floor

    @property
    def partitions(self) -> Mapping[str, PartitionState]:
        return self.manifest.states

    def leaders(self, partitions: Iterable[str]) -> tuple[str, ...]:
        """Return one partition of each part."""
        found = ((part_of(self.manifest.parts, partition), partition) for partition in partitions)
        return tuple({part.path: partition for part, partition in found if part is not None}.values())

    async def blocks(self, partition: str) -> Mapping[str, bytes]:
        """Return the block of this partition as of ``position``, and the others of its part.

        Raises:
            CorruptObject: neither its part nor the log can be read.
        """
        if self._is_damaged:
            return await self._logged.get()
        part = part_of(self.manifest.parts, partition)
        if part is None:
            return {partition: b""}
        reading = self._reading.setdefault(part.path, Lazy(partial(self._read, part.path)))
        try:
            return {partition: b"", **await reading.get()}
        except (CorruptObject, NotFound):
            return await self._logged.get()
        finally:
            self._reading.pop(part.path, None)

    async def _read(self, path: str) -> dict[str, bytes]:
        try:
            return decode_part(await self._backend.get(path), source=path)
        except (CorruptObject, NotFound) as error:
            is_replaced = await self._lost(self.manifest.name, path, error)
            self._is_damaged, self._is_replaced = True, self._is_replaced or is_replaced
            raise

    async def _from_log(self) -> dict[str, bytes]:
        """Return all blocks, gathered from the entries up to the position.

        Raises:
            TryAgain: newer checkpoints have replaced this one, and the log before it is archived.
            CorruptObject: the log does not have all entries.
        """
        start = self.manifest.history.start
        if start and self._is_replaced:
            raise self._outdated()
        if start:
            raise CorruptObject(
                f"a part of {self.manifest.path} is damaged or missing, and the log up to position {start} is "
                "archived; restore .hoodie/.tallymark/checkpoint from a copy"
            )
        numbers = range(1, self.position + 1)
        entries = await read_entries(self._backend, numbers)
        history = History(self.manifest.history.table)
        for number in numbers:
            if number not in entries and self._is_replaced:
                raise self._outdated()
            if number not in entries:
                raise CorruptObject(
                    f"entry {number} of the log is gone, and a part of a checkpoint too; restore a copy"
                )
            history.apply(entries.pop(number))
        if history.hash_at(self.position) != self.manifest.history.hash.hex():
            raise CorruptObject(
                f"the log up to position {self.position} is not the one that {self.manifest.path} was made of; delete "
                ".hoodie/.tallymark/checkpoint, which costs time and nothing else"
            )
        view = View(keep_positions=self.position - self.floor)
        view.sync(history)
        return {partition: await view.block(partition) for partition in view.states}

    def _outdated(self) -> TryAgain:
        return TryAgain(
            f"this reader has read the log of {self._backend.url} from the checkpoint of position {self.position}, "
            "which newer ones have replaced since, and the log before it is archived; open the table or its view again"
        )
