"""Those who keep a view of a table that goes on.

Each function counts one failure in the story of a run.
"""

from collections.abc import Iterator

from tallymark.engine.views.checkpoint_format import CHECKPOINT_FOLDER, POINTER
from tests.history import Landed, TurnedAway, Viewed
from tests.simulation.story import Story
from tests.table_invariants import LOG, file_path


def behind(story: Story) -> int:
    """Answers of a view that had not read the whole log."""
    return sum(event.head < entries for entries, event in _answers(story))


def of_older(story: Story) -> int:
    """Answers for a position after which, as the view knew, files of the partition had come or gone."""
    return sum(_held(story, event, event.position) != _held(story, event, event.head) for _, event in _answers(story))


def turned_away(story: Story) -> int:
    return sum(isinstance(event, TurnedAway) for event in story.events)


def stood_still(story: Story) -> int:
    return len(story.befell("is stopped", who="viewer"))


def checkpoint(story: Story) -> int:
    """Pointers to a checkpoint that is whole."""
    return len(story.landed.get(POINTER, ()))


def died_amid_a_checkpoint(story: Story) -> int:
    """Writers whose parts or manifest are there, and no pointer that names them."""
    return sum(
        _newest_of_checkpoints(story, process, place) not in (None, POINTER)
        for place, process in story.befell("is killed")
    )


def _newest_of_checkpoints(story: Story, process: str, before: int) -> str | None:
    """The path of what the process had put last by then among checkpoints."""
    put = [
        (place, path)
        for path, landings in story.landed.items()
        if path.startswith(CHECKPOINT_FOLDER)
        for place, event in landings
        if event.by == process and place < before
    ]
    return max(put, default=(0, None))[1]


def _answers(story: Story) -> Iterator[tuple[int, Viewed]]:
    """Each, and how many entries the log had in that moment."""
    entries = 0
    for event in story.events:
        if isinstance(event, Landed) and event.path.startswith(LOG):
            entries += 1
        elif isinstance(event, Viewed):
            yield entries, event


def _held(story: Story, event: Viewed, position: int) -> set[str]:
    return {file_path(file) for file in story.files_at(position) if file[0] == event.partition}
