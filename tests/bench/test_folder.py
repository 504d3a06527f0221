"""The folder of a run."""

from itertools import count
from pathlib import Path
from threading import Event, Thread

from tallymark.bench.folder import new_folder


def test_a_folder_goes_although_somebody_still_writes_into_it(tmp_path):
    began, has_ended = Event(), Event()

    def write(folder: Path) -> None:
        for number in count():
            try:
                (folder / str(number)).touch()
            except FileNotFoundError:
                return
            if number == 100:
                began.set()
            if has_ended.is_set():
                return

    writers: list[Thread] = []
    try:
        with new_folder(tmp_path) as folder:
            writers += [Thread(target=write, args=(folder,)) for _ in range(4)]
            for writer in writers:
                writer.start()
            began.wait()
        assert list(tmp_path.iterdir()) == []
    finally:
        has_ended.set()
        for writer in writers:
            writer.join()
