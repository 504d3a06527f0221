"""The files that a table holds, as a plan looks at them."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet

from tallymark.engine.settings import SizingSettings
from tallymark.engine.timeline.entry import DataFile


def by_partition(files: Iterable[DataFile]) -> dict[str, list[DataFile]]:
    """In the order given."""
    held: defaultdict[str, list[DataFile]] = defaultdict(list)
    for file in files:
        held[file.partition].append(file)
    return dict(held)


def small_files(files: Sequence[DataFile], settings: SizingSettings, taken: AbstractSet[str]) -> list[DataFile]:
    """Those that an append may fill: strictly below the limit, and not being filled by another."""
    small = [file for file in files if file.bytes < settings.small_file_bytes]
    return [file for file in small if file.path not in taken] if taken else small
