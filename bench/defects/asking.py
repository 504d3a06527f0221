"""Many clients that ask for as many markers as they can, until their server is gone."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count

from tallymark.bench.defects.side import MarkerClient, MarkerServer, Unanswered

END_TIMEOUT_S = 60.0


@dataclass(slots=True)
class Asking:
    """One thread, one connection."""

    client: MarkerClient
    path: Callable[[int], str]
    acked: list[str] = field(default_factory=list)
    refused: int = 0
    is_over: threading.Event = field(default_factory=threading.Event)

    def run(self) -> None:
        for number in count():
            path = self.path(number)
            try:
                if self.is_over.is_set():
                    break
                if self.client.create(path):
                    self.acked.append(path)
                else:
                    self.refused += 1
            except Unanswered:
                break
        self.client.close()


@contextmanager
def asking(server: MarkerServer, instant: str, clients: int) -> Iterator[list[Asking]]:
    """So many of them for the block. When it has ended nobody asks any more, and all that was acked is in ``acked``."""
    askers = [Asking(server.client(instant), _paths(each)) for each in range(clients)]
    threads = [threading.Thread(target=asker.run, daemon=True) for asker in askers]
    for thread in threads:
        thread.start()
    try:
        yield askers
    finally:
        for asker in askers:
            asker.is_over.set()
            asker.client.give_up()
        for thread in threads:
            thread.join(END_TIMEOUT_S)
            assert not thread.is_alive()


def _paths(client: int) -> Callable[[int], str]:
    return lambda number: data_file(f"day={number % 28 + 1:02}", client * 1_000_000 + number)


def data_file(partition: str, number: int, instant: str = "20260101000000000") -> str:
    """The path of a data file as Hudi calls its own."""
    return f"{partition}/{number:08x}-5eed-4000-8000-{number:012x}-0_{number % 1000}-0-0_{instant}.parquet"
