"""Random logs such as writers leave: commits that add, fill and overwrite; rollbacks, void entries, cleans."""

from dataclasses import dataclass, field

from hypothesis import strategies as st

from tallymark.engine.timeline.entry import DataFile, LogEntry
from tests.engine.timeline.entries import clean, commit, data_file, partitions, rollback

PARTITIONS = ("month=1", "month=2", "month=3")

FIRST, SECOND, THIRD = data_file("month=1", 1), data_file("month=1", 2), data_file("month=2", 3)
THREE = (
    commit(1, added=(FIRST,)),
    commit(2, scope=partitions("month=1"), added=(SECOND,), removed=(FIRST,)),
    commit(3, added=(THIRD,)),
)


@dataclass
class _Log:
    entries: list[LogEntry] = field(default_factory=list)
    live: dict[str, DataFile] = field(default_factory=dict)
    files: int = 0
    horizon: int = 0

    @property
    def number(self) -> int:
        return len(self.entries) + 1

    def new(self, partition: str) -> DataFile:
        self.files += 1
        return data_file(partition, self.number, f"f{self.files}x")

    def commit(self, added: list[DataFile], removed: list[DataFile], scope=None) -> None:
        self.entries.append(commit(self.number, added=tuple(added), removed=tuple(removed), scope=scope))
        for file in removed:
            del self.live[file.path]
        self.live.update((file.path, file) for file in added)


@st.composite
def log_entries(draw: st.DrawFn, *, most: int = 15) -> tuple[LogEntry, ...]:
    log = _Log()
    for _ in range(draw(st.integers(0, most))):
        held = sorted({file.partition for file in log.live.values()})
        match draw(st.sampled_from(("append", "append", "fill", "overwrite", "rollback", "void", "clean"))):
            case "append":
                where = draw(st.lists(st.sampled_from(PARTITIONS), max_size=4))
                log.commit([log.new(partition) for partition in where], [])
            case "fill" if held:
                small = draw(st.sampled_from(sorted(log.live.values(), key=lambda file: file.path)))
                log.commit([log.new(small.partition)], [small])
            case "overwrite":
                partition = draw(st.sampled_from(PARTITIONS))
                old = [file for file in log.live.values() if file.partition == partition]
                count = draw(st.integers(0, 2))
                log.commit([log.new(partition) for _ in range(count)], old, partitions(partition))
            case "void" if log.entries:
                instant = draw(st.sampled_from(log.entries)).instant
                log.entries.append(_again(log, instant))
            case "clean" if log.horizon < len(log.entries):
                log.horizon = draw(st.integers(log.horizon + 1, len(log.entries)))
                log.entries.append(clean(log.number, log.horizon))
            case _:
                log.entries.append(rollback(log.number))
    return tuple(log.entries)


def _again(log: _Log, instant: str) -> LogEntry:
    """An entry of an instant that was decided: it counts for nothing, whatever it says."""
    late = data_file(PARTITIONS[0], log.number, "late")
    return LogEntry(kind="commit", instant=instant, nonce=f"v{log.number}", base=0, operation="append", added=(late,))
