"""What those may count on who keep a view, whatever becomes of the table meanwhile."""

from tests.history import Event, History, Synced, TurnedAway, Viewed
from tests.promises import Replay


def a_view_is_never_newer_than_its_reader(history: History) -> None:
    """Of what came after the position that was asked for, or never was committed, an answer holds nothing."""
    replay = Replay(history)
    for event in replay.events():
        if isinstance(event, Viewed):
            newer = set(event.files) - _held(replay, event)
            _hold(not newer, f"not there at its position: {newer}", event, history)


def never_misses_a_committed_file(history: History) -> None:
    """An answer holds all that was there at its position, and who has read the log knows all that was in it before."""
    replay = Replay(history)
    for event in replay.events():
        if isinstance(event, Viewed):
            held = _held(replay, event)
            missed = held - set(event.files)
            _hold(not missed, f"there at its position: {missed}", event, history)
            _hold(event.is_named == bool(held), f"partitions tell otherwise: {event.is_named}", event, history)
        elif isinstance(event, Synced):
            head = len(replay.states) - 1
            is_between = event.head_before <= event.position <= head
            _hold(is_between, f"not between {event.head_before} and {head}", event, history)


def never_serves_a_deleted_file(history: History) -> None:
    """At a position that is retained every file of an answer is there in the moment of the answer."""
    replay = Replay(history)
    for event in replay.events():
        if isinstance(event, Viewed) and _is_retained(replay, event.position):
            gone = set(event.files) - replay.storage.keys()
            _hold(not gone, f"not there: {gone}", event, history)


def answers_exactly_what_is_retained(history: History) -> None:
    """Nobody is turned away but for a position after which a clean has let something go; and who has read the entry of
    that clean is answered for none of these.
    """
    replay = Replay(history)
    for event in replay.events():
        if isinstance(event, TurnedAway):
            since = _retained_since(replay, len(replay.states) - 1)
            _hold(event.position < since, f"turned away, and retained is all since {since}", event, history)
        elif isinstance(event, Viewed):
            since = _retained_since(replay, event.head)
            _hold(event.position >= since, f"answered, and retained is what there is since {since}", event, history)


def _retained_since(replay: Replay, head: int) -> int:
    """The last position up to the horizon, as the log says it up to its ``head``, at which something was replaced."""
    replaced = (at for at in range(replay.horizons[head], 0, -1) if replay.states[at - 1] - replay.states[at])
    return next(replaced, 0)


def _held(replay: Replay, event: Viewed) -> set[str]:
    return {path for path in replay.states[event.position] if path.startswith(f"{event.partition}/")}


def _is_retained(replay: Replay, position: int) -> bool:
    return replay.states[position] <= replay.live | replay.retained.keys()


def _hold(holds: bool, otherwise: str, event: Event, history: History) -> None:
    if not holds:
        raise AssertionError(f"{event.at:.4f} {event}: {otherwise}\n{history!r}")
