"""Publishing of a task's closed files beside each other, while its thread encodes the next ones.

Owns: how many files and bytes are in flight, when one takes another name, and the order of the published files. Does
not own: the put of one file (``open_file``).
"""

from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait

from tallymark.backends.errors import Unavailable
from tallymark.engine.errors import Stopped
from tallymark.engine.settings import TaskSettings
from tallymark.engine.tasks.open_file import OpenFile
from tallymark.engine.timeline.entry import DataFile


class Publisher:
    """Owned by the task's thread. Only ``OpenFile.put`` runs in others; names are taken in this one."""

    def __init__(self, settings: TaskSettings, executor: Executor) -> None:
        """``executor`` runs ``publish_count`` puts at once."""
        self._settings = settings
        self._executor = executor
        self._files: list[DataFile] = []
        """In the order in which they were added; those in flight as they were closed."""
        self._in_flight: dict[Future[DataFile], tuple[OpenFile, int]] = {}
        """Each with its place in ``_files``."""

    def add(self, file: OpenFile, *, is_last: bool = False) -> None:
        """Close the file and start its put, once it is within the limits beside those in flight. The last file of a
        task is put in this thread, which has nothing else to do.

        Raises:
            What ``close``, ``put`` and ``rename`` of this file, or of an earlier one, raise. The attempt is lost.
        """
        closed = file.close()
        while self._in_flight and not self._fits(closed):
            self._settle()
        self._files.append(closed)
        put = _in_this_thread(file.put) if is_last else self._executor.submit(file.put)
        self._in_flight[put] = file, len(self._files) - 1

    def finish(self) -> Sequence[DataFile]:
        """Return the files, all of which exist, in the order in which they were added. Errors are those of ``add``."""
        while self._in_flight:
            self._settle()
        return self._files

    def check(self) -> None:
        """Raise the error of a put that has found the job to be over, if there is one."""
        for put in self._in_flight:
            if put.done() and isinstance(error := put.exception(), Stopped):
                raise error

    def close(self) -> None:
        """Wait for the puts in flight, then drop the files whose put has not succeeded."""
        self._executor.shutdown()
        for file, _ in self._in_flight.values():
            file.abandon()

    def _fits(self, file: DataFile) -> bool:
        in_flight = sum(self._files[place].bytes for _, place in self._in_flight.values())
        is_one_too_many = len(self._in_flight) >= self._settings.publish_count
        return not is_one_too_many and in_flight + file.bytes <= self._settings.publish_bytes

    def _settle(self) -> None:
        """Wait for an outcome, and put files whose outcome is unclear under other names."""
        wait(self._in_flight, return_when=FIRST_COMPLETED)
        for put in [put for put in self._in_flight if put.done()]:
            file, place = self._in_flight[put]
            try:
                self._files[place] = put.result()
            except Unavailable as error:
                file.rename(error)
                self._in_flight[self._executor.submit(file.put)] = file, place
            del self._in_flight[put]


def _in_this_thread(put: Callable[[], DataFile]) -> Future[DataFile]:
    outcome: Future[DataFile] = Future()
    try:
        outcome.set_result(put())
    except Unavailable as error:
        outcome.set_exception(error)
    return outcome
