"""Whatever befalls a table: a view that followed it, one that is built anew, and the truth are the same."""

import tempfile
from collections.abc import Sequence
from pathlib import Path

from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from tallymark.backends import Backend
from tallymark.engine.settings import CommitSettings
from tallymark.engine.timeline.log import CommitLog
from tallymark.engine.views.view import View
from tests.engine.views.agreement import answers_are_the_truth, answers_every_retained_position
from tests.engine.views.places import InMemory, OnDisk, Place
from tests.engine.views.table_histories import Player, Step, histories, without_threads
from tests.engine.views.truth import Truth

readers = st.sampled_from(["table", "table", "directory"])


class Follower:
    """Somebody who keeps a view up to date, and reads the log only now and then."""

    def __init__(self, backend: Backend) -> None:
        self._log = CommitLog(backend, CommitSettings())
        self.view = View()

    async def follow(self) -> None:
        self.view.sync(await self._log.refresh())


async def freshly_built(backend: Backend) -> View:
    fresh = Follower(backend)
    await fresh.follow()
    return fresh.view


async def play(place: Place, kind: str, steps: Sequence[Step]) -> None:
    player, follower = Player(place, kind), Follower(place.backend)
    await player.found()
    await follower.follow()
    for step in steps:
        has_died = await player.play(step)
        event(f"{type(step.act).__name__} {'dies' if has_died else 'lives'}")
        truth = Truth(place.objects)
        for what in truth.occurred:
            event(what)
        if step.is_followed:
            await follower.follow()
            answers_every_retained_position(follower.view, truth)
        await answers_are_the_truth(follower.view, truth)
        fresh = await freshly_built(place.backend)
        answers_every_retained_position(fresh, truth)
        await answers_are_the_truth(fresh, truth)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(kind=readers, has_staging=st.booleans(), steps=histories)
def test_views_are_the_truth_at_every_retained_position(kind, has_staging, steps):
    place = InMemory(has_staging=has_staging)
    with without_threads():
        place.run(play, place, kind, steps)


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(kind=readers, steps=histories)
def test_views_of_a_table_on_this_machine_are_the_truth(kind, steps):
    with tempfile.TemporaryDirectory() as directory:
        place = OnDisk(Path(directory) / "table")
        place.run(play, place, kind, steps)
