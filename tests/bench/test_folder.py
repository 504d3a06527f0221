"""The folder of a run."""

from itertools import count
from threading import Event, Thread

from tallymark.bench.folder import new_folder


def test_a_folder_goes_although_somebody_still_writes_into_it(tmp_path):
    began = Event()

    def write(folder) -> None:
        for number in count():
            try:
                (folder / str(number)).touch()
            except FileNotFoundError:
                return
            if number == 100:
                began.set()

    with new_folder(tmp_path) as folder:
        writing = Thread(target=write, args=(folder,))
        writing.start()
        began.wait()
    writing.join()
    assert list(tmp_path.iterdir()) == []
