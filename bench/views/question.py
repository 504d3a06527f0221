"""What is asked of a view: the files of a partition, or one file of it by its id."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from tallymark.engine.timeline.entry import DataFile

QUESTIONS = 10_000
"""Different ones; asked for longer, they are asked again."""


@dataclass(frozen=True, slots=True)
class Question:
    partition: str
    file_id: str | None
    """None: all of its files are asked for."""
    files: int
    """That a right answer names."""

    def fields(self) -> list[object]:
        """What it is made of again, in another process."""
        return [self.partition, self.file_id, self.files]


def questions(files: Sequence[DataFile], random: Random, count: int = QUESTIONS) -> tuple[Question, ...]:
    """Half for a partition and half for a file, of partitions that each are as likely as another."""
    held = Counter(file.partition for file in files)
    chosen = [random.choice(files) for _ in range(count)]  # every partition has as many, but for one
    return tuple(
        Question(file.partition, None, held[file.partition]) if number % 2 else _of_file(file)
        for number, file in enumerate(chosen)
    )


def _of_file(file: DataFile) -> Question:
    return Question(file.partition, file.file_id, 1)
