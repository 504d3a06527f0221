"""Whatever befalls a table: a view that followed it, one that is built anew, and the truth are the same."""

import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from tallymark.engine.settings import ViewSettings
from tests.engine.jobs.scene import table
from tests.engine.views.stores import settings_of
from tests.engine.views.table_histories import InMemory, OnDisk, Place, Player, Step, histories, without_threads
from tests.engine.views.truth import Truth, answers_are_the_truth, answers_every_retained_position
from tests.support.examples import examples

pytestmark = pytest.mark.no_cover

readers = st.sampled_from(["table", "table", "directory"])


async def play(place: Place, readers: str, steps: Sequence[Step], views: ViewSettings) -> None:
    player = Player(place, readers, views)
    await player.found()
    async with table(place.backend, views=views).view() as follower:
        for step in steps:
            has_died = await player.play(step)
            truth = Truth(place.objects)
            for what in truth.occurred | {f"{type(step.act).__name__} {'dies' if has_died else 'lives'}"}:
                event(what)
            if step.is_followed:
                await follower.sync()
                answers_every_retained_position(follower, truth, keep_positions=views.keep_positions)
            await answers_are_the_truth(follower, truth)
            async with table(place.backend, views=views).view() as fresh:
                answers_every_retained_position(fresh, truth, keep_positions=views.keep_positions)
                await answers_are_the_truth(fresh, truth)


def views_of(kind: str, folder: str) -> st.SearchStrategy[ViewSettings]:
    """All that settings say of views, and checkpoints far more often than by default."""
    return st.builds(
        partial(settings_of, kind, folder),
        incremental=st.sampled_from([True, True, False]),
        keep_positions=st.sampled_from([0, 2, 256]),
        checkpoint_entries=st.sampled_from([1, 2, 3, 64]),
        preload=st.booleans(),
    )


EXAMPLES = {"memory": 150, "spillable": 60, "spillable, none in memory": 30, "key-value": 15}
"""Of each store: to open RocksDB anew after each step takes its time."""


@pytest.mark.draws
@pytest.mark.parametrize("kind", EXAMPLES)
def test_views_are_the_truth_at_every_retained_position(kind, tmp_path):
    @settings(max_examples=examples(EXAMPLES[kind]), deadline=None, suppress_health_check=[HealthCheck.too_slow])
    @given(readers=readers, has_staging=st.booleans(), steps=histories, views=views_of(kind, str(tmp_path)))
    def check(readers, has_staging, steps, views):
        place = InMemory(has_staging=has_staging)
        place.run(play, place, readers, steps, views)

    with without_threads():
        check()


@settings(max_examples=examples(8), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(readers=readers, steps=histories, data=st.data())
def test_views_of_a_table_on_this_machine_are_the_truth(readers, steps, data):
    with tempfile.TemporaryDirectory() as directory:
        place = OnDisk(Path(directory) / "table")
        kind = data.draw(st.sampled_from(list(EXAMPLES)))
        place.run(play, place, readers, steps, data.draw(views_of(kind, f"{directory}/views")))
