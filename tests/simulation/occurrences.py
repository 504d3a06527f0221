"""Which failures a run has been through, told from its history. A campaign in which one never occurs has not tested it.

Each failure has a name that says what it is, and a function that counts it. ``docs/failure-modes.md`` says what becomes
of each, by the same names.
"""

from collections import Counter
from collections.abc import Callable, Mapping

from tests.history import Landed
from tests.simulation.marker_world import MarkerOutcome
from tests.simulation.plan import Plan
from tests.simulation.story import BEAT, OPEN, Story
from tests.simulation.world import LEASE, Outcome
from tests.table_invariants import LOG, file_path

MARKERS = ".hoodie/.temp/"
STUCK_S = 10.0
"""A hundred times what a put usually takes in the slowest of weathers, at least."""


def occurrences(outcome: Outcome | MarkerOutcome) -> Counter[str]:
    """How often each failure occurred in the run; those that did not are 0."""
    story = Story(outcome)
    special = OF_TABLES if isinstance(outcome, Outcome) else OF_SERVERS
    return Counter({name: count(story) for name, count in (EVERYWHERE | special).items()})


def missing(occurred: Mapping[str, int]) -> list[str]:
    """The failures that never occurred."""
    return [name for name in FAILURES if not occurred.get(name)]


# Requests to storage, and the network


def _strayed(verb: str, below: str, *what: str) -> Callable[[Story], int]:
    """Requests of that kind, below that folder, that did not go as they should."""

    def count(story: Story) -> int:
        return sum(
            event.verb == verb and event.path.startswith(below) and event.what in what for event in story.strayed
        )

    return count


def _counted(name: str) -> Callable[[Story], int]:
    return lambda story: story.counts[name]


def _data_put_unclear(story: Story) -> int:
    return sum(event.verb == "data" and event.what in ("lost answer", "late landing") for event in story.strayed)


def _after_a_delete(what: str) -> Callable[[Story], int]:
    """Puts that strayed so, and landed where a delete had been meanwhile."""

    def count(story: Story) -> int:
        late = [event for event in story.strayed if event.verb in ("put", "data") and event.what == what]
        return sum(
            any(place < landing for place, removed in story.removed.get(event.path, ()) if removed.at > event.at)
            for event in late
            for landing, landed in story.landed.get(event.path, ())
            if landed.at == event.at + (event.for_s or 0.0)
        )

    return count


def _deleted_once_more(story: Story) -> int:
    return sum(event.verb.startswith("delete") and event.what == "lands once more" for event in story.strayed)


def _stuck(*, itself: bool) -> Callable[[Story], int]:
    """Segments that took long, while the same service brought others home, or a repeat of the same."""

    def count(story: Story) -> int:
        slow = [event for event in story.strayed if "/MARKERS" in event.path and (event.for_s or 0.0) > STUCK_S]
        return sum(
            any(
                event.at < landed.at < event.at + (event.for_s or 0.0)
                for path in story.segments
                for _, landed in story.landed[path]
                if landed.by == event.by and (path == event.path) == itself
            )
            for event in slow
        )

    return count


def _flush_failed(story: Story) -> int:
    return sum(event.error == "FlushFailed" for _, event in story.refused)


# Processes


def _befell(what: str, phase: str) -> Callable[[Story], int]:
    """Writers whom it befell in that phase of their job."""
    return lambda story: sum(
        story.phase(process, place) == phase for place, process in story.befell(what, who="writer")
    )


def _ended_while_rolling_back(what: str) -> Callable[[Story], int]:
    """Of any process that is not a task."""
    return lambda story: sum(
        story.phase(process, place) == "in a rollback of another" for place, process in story.befell(what)
    )


def _in_flush(what: str) -> Callable[[Story], int]:
    """Services whom it befell while a segment was on its way."""
    return lambda story: sum(
        any(
            sent < place and event.server == process and not story.has_landed(event.path, place)
            for sent, event in story.sent
        )
        for place, process in story.befell(what)
    )


def _died_between_put_and_ack(story: Story) -> int:
    return sum(
        any(_is_unanswered(story, path, place) for path in story.segments if _was_put_by(story, path, process, place))
        for place, process in story.befell("is killed")
    )


def _was_put_by(story: Story, path: str, process: str, before: int) -> bool:
    return any(event.by == process and place < before for place, event in story.landed[path])


def _is_unanswered(story: Story, path: str, at: int) -> bool:
    """Whether somebody has asked for a marker of the segment, and waits then."""
    return any(
        story.answered.get(request, at) >= at
        and any((asked.instant, name) in story.segments[path] for name in asked.names)
        for request, asked in story.asked.items()
    )


def _died_between_ack_and_data(story: Story) -> int:
    return sum(
        any(
            story.begun.get(path) == process and acked < place and not story.has_landed(path, place)
            for path, acked in story.acked.items()
        )
        for place, process in story.tasks("is killed")
    )


def _failed_half_way(story: Story) -> int:
    writing = set(story.begun.values())
    return sum(process in writing for _, process in story.tasks("fails: InputFailed()"))


def _second_success(story: Story) -> int:
    return sum(event.what.startswith("hears of a second success") for _, event in story.notes)


def _success_of_the_dead(story: Story) -> int:
    return sum(event.what.startswith("hears of the success of") for _, event in story.notes)


def _stood_still_beyond_its_lease(story: Story) -> int:
    return len(_long_stops(story))


def _stood_still_and_was_ended(story: Story) -> int:
    ended = {event.writer for event in story.told if event.outcome == "RolledBack"}
    return sum(process in ended for process in _long_stops(story))


def _long_stops(story: Story) -> list[str]:
    """Writers that had an open instant and stood still for longer than their lease."""
    woken = story.befell("goes on", who="writer")
    stops = story.befell("is stopped", who="writer")
    return [
        process
        for stopped, process in stops
        for went_on, woke in woken
        if woke == process
        and story.events[went_on].at - story.events[stopped].at > LEASE.expiry_s
        and story.phase(process, stopped) in ("writing", "before its entry")
    ]


def _clock_set_back(story: Story) -> int:
    assert isinstance(story.plan, Plan)
    set_back = {
        f"writer{number}"
        for number, writer in enumerate(story.plan.writers)
        if writer.mishap and writer.mishap.what == "clock jumps" and writer.mishap.for_s < 0
    }
    return sum(process in set_back for _, process in story.befell("'s clock jumps"))


# Servers without a table


def _flights(story: Story) -> list[tuple[int, int, set[tuple[str, str]]]]:
    """Of each segment that landed: when it was sent, when it had landed, and what is in it."""
    return [
        (sent, story.landed[event.path][0][0], story.segments[event.path])
        for sent, event in story.sent
        if event.path in story.segments
    ]


def _asked_in_flight(story: Story) -> int:
    return sum(
        any(sent < place < landed and (asked.instant, name) in markers for name in asked.names)
        for sent, landed, markers in _flights(story)
        for place, asked in story.asked_at
    )


def _gave_up_in_flight(story: Story) -> int:
    return sum(
        any(sent < place < landed and (instant, name) in markers for name in names)
        for sent, landed, markers in _flights(story)
        for place, instant, names in story.gave_up
    )


def _claims(story: Story) -> dict[str, list[tuple[int, str]]]:
    """Instant to the claims of its incarnations: when, and by whom."""
    claims: dict[str, list[tuple[int, str]]] = {}
    for path, [(place, event), *_] in story.landed.items():
        if "/SERVER" in path:
            claims.setdefault(path.split("/")[-2], []).append((place, event.by))
    return claims


def _taken_over(story: Story) -> int:
    return sum(len({by for _, by in claims}) > 1 for claims in _claims(story).values())


def _two_servers(story: Story) -> int:
    """Segments that an earlier server put after a later one had claimed the instant."""
    return sum(
        any(landed[0][0] > place and landed[0][1].by in earlier for path, landed in _segments_of(story, instant))
        for instant, claims in _claims(story).items()
        for number, (place, by) in enumerate(sorted(claims))
        if (earlier := {other for _, other in sorted(claims)[:number]} - {by})
    )


def _segments_of(story: Story, instant: str) -> list[tuple[str, list[tuple[int, Landed]]]]:
    return [(path, story.landed[path]) for path in story.segments if f"/{instant}/" in path]


# Jobs


def _fell_back(story: Story) -> int:
    """Direct markers of jobs that have a service."""
    assert isinstance(story.plan, Plan)
    served = {
        story.instant_of.get(f"writer{number}")
        for number, writer in enumerate(story.plan.writers)
        if writer.kind == "batched"
    }
    return sum(".marker." in path and path.split("/")[2] in served for path in story.landed if path.startswith(MARKERS))


def _zombies_refused(story: Story) -> int:
    """Tasks that found the way to their file closed after their job was over: its name fenced, or staging closed."""
    return sum("committed or rolled back meanwhile" in event.what for _, event in story.notes if "/" in event.process)


def _zombie_fenced(story: Story) -> int:
    return 0 if story.plan.has_staging else _zombies_refused(story)


def _zombie_without_staging(story: Story) -> int:
    return _zombies_refused(story) if story.plan.has_staging else 0


def _zombie_without_marker(story: Story) -> int:
    return sum(
        event.error in ("Sealed", "RolledBack") and story.asked[event.request].instant in story.decisions
        for _, event in story.refused
    )


def _zombie_landed(story: Story) -> int:
    """Files that landed after their instant's rollback had been decided."""
    return sum(
        landed[0][0] > decision.place
        for decision in story.rollbacks
        for path, landed in story.landed.items()
        if path.endswith(f"{decision.entry['instant']}.parquet") and landed[0][1].by == story.begun.get(path)
    )


def _same_instant(story: Story) -> int:
    """Instants that more than one writer has beaten for before they were reserved."""
    beats = (events for path, events in story.landed.items() if path.startswith(BEAT) and "probe" not in path)
    return sum(len({event.by for _, event in events}) > 1 for events in beats)


def _instant_given_up(story: Story) -> int:
    """Reservations whose own writer dropped them, since the log held a later instant."""
    return sum(
        path.removeprefix(OPEN) not in story.decisions and events[0][1].by == removed[0][1].by
        for path, events in story.landed.items()
        if path.startswith(OPEN) and (removed := story.removed.get(path))
    )


def _unprojected(story: Story) -> int:
    """Writers that died with their entry in the log and their commit not yet on the Hudi timeline."""
    return sum(
        story.phase(process, place) == "after its entry" and not _is_projected(story, story.instant_of[process], place)
        for place, process in story.befell("is killed", who="writer")
    )


def _is_projected(story: Story, instant: str, at: int) -> bool:
    return any(story.has_landed(f".hoodie/{instant}.{action}", at) for action in ("commit", "replacecommit"))


def _died_amid_deletes(story: Story) -> int:
    """Writers that had deleted some of what they replaced when they died, and others the rest."""
    count = 0
    for place, process in story.befell("is killed", who="writer"):
        decision = story.decisions.get(story.instant_of.get(process, ""))
        if decision is not None and decision.place < place and decision.entry["kind"] == "commit":
            removals = [story.removed.get(file_path(file)) for file in decision.entry["removed"]]
            by_itself = [removal[0][1].by == process for removal in removals if removal]
            count += any(by_itself) and not all(by_itself)
    return count


def _ended_by_another(kind: str) -> Callable[[Story], int]:
    """Commits or rollbacks that one process decided and another one brought to their end."""

    def count(story: Story) -> int:
        decisions = story.commits if kind == "commit" else story.rollbacks
        removals = [(one, story.removed.get(OPEN + one.entry["instant"])) for one in decisions]
        return sum(removed[0][1].by != one.by for one, removed in removals if removed)

    return count


def _living_ended_by_name(story: Story) -> int:
    return sum(
        decision.by.startswith("visitor") and not _has_died(story, decision.entry["instant"], decision.place)
        for decision in story.rollbacks
    )


def _has_died(story: Story, instant: str, before: int) -> bool:
    writer = next((writer for writer, its in story.instant_of.items() if its == instant), None)
    return any(process == writer and place < before for place, process in story.befell("is killed"))


def _conflict(story: Story) -> int:
    return sum(event.outcome == "ConflictError" for event in story.told)


def _outcome_unknown(story: Story) -> int:
    return sum(event.outcome == "CommitUnknown" for event in story.told)


def _overwrite_beside_append(story: Story) -> int:
    """Overwrites that committed after an append which they had not seen, and which stays."""
    return sum(
        any(
            overwrite.entry["base"] < append.position < overwrite.position
            and any(_holds(overwrite.entry["scope"], file[0]) for file in append.entry["added"])
            for append in story.commits
            if append.entry["operation"] == "append"
        )
        for overwrite in story.commits
        if overwrite.entry["scope"]
    )


def _holds(scope: dict[str, object], partition: str) -> bool:
    return bool(scope["all"]) or partition in scope["partitions"]  # type: ignore[operator]


def _only_a_lost_attempt(story: Story) -> int:
    """Partitions that held files, to which only lost attempts of a dynamic overwrite wrote: they stay as they were."""
    count = 0
    for decision in story.commits:
        scope, instant = decision.entry["scope"], decision.entry["instant"]
        if scope and not scope["all"]:
            held = {file[0] for file in story.files_at(decision.position - 1)}
            touched = {path.rpartition("/")[0] for path in story.begun if path.endswith(f"{instant}.parquet")}
            count += len((touched & held) - set(scope["partitions"]))
    return count


def _empty(*, dynamic: bool) -> Callable[[Story], int]:
    """Overwrites of a table that held files, by nothing."""
    return lambda story: sum(
        not decision.entry["added"]
        and bool(scope := decision.entry["scope"])
        and scope["all"] != dynamic
        and bool(story.files_at(decision.position - 1))
        for decision in story.commits
    )


def _clean_beside_a_job(story: Story) -> int:
    return sum(
        any(story.is_open(instant, place) for instant in story.instant_of.values())
        for place, process in story.befell("does its round: clean")
        if process.startswith("visitor")
    )


def _read_beside_a_job(story: Story) -> int:
    return sum(
        any(story.is_open(instant, place) for instant in story.instant_of.values())
        for place, _ in story.befell("does its round: read")
    )


EVERYWHERE: dict[str, Callable[[Story], int]] = {
    "a put of markers never lands": _strayed("put", MARKERS, "lost request"),
    "a put of markers lands, and its answer is lost": _strayed("put", MARKERS, "lost answer"),
    "a put of markers lands after it was given up": _strayed("put", MARKERS, "late landing"),
    "a put of markers hangs, and others go on": _stuck(itself=False),
    "a put of markers hangs, and its repeat lands": _stuck(itself=True),
    "a put of markers is throttled": _strayed("put", MARKERS, "throttled"),
    "a flush fails, and its requests are told": _flush_failed,
    "a request takes far longer than usual": lambda story: story.counts["tail before"] + story.counts["tail after"],
    "a delete fails half way": _counted("delete failed half way"),
    "a listing of several pages runs beside deletes": _counted("listing in pages beside deletes"),
    "an ack is lost with its connection, and asked again": _counted("answer lost, asked again"),
    "a connection is reset": _counted("connection reset"),
    "a connection is half open": _counted("frame into a half-open connection"),
    "hosts cannot reach each other": _counted("hosts cut off"),
    "a service refuses what it has no room for": _counted("refused as overloaded"),
    "a service dies with a flush in flight": _in_flush("is killed"),
    "a service dies between a put of markers and its acks": _died_between_put_and_ack,
    "a service is cancelled with a flush in flight": _in_flush("is cancelled"),
}
"""Requests to storage and between processes, in runs of every kind."""

OF_SERVERS: dict[str, Callable[[Story], int]] = {
    "a marker is asked for again while it is on its way": _asked_in_flight,
    "a requester gives up while its marker is on its way": _gave_up_in_flight,
    "a server goes on with an instant of another": _taken_over,
    "two servers of one instant put markers at once": _two_servers,
}
"""Servers of markers without a table."""

OF_TABLES: dict[str, Callable[[Story], int]] = {
    "a put of a log entry is unclear": _strayed("put", LOG, "lost answer", "late landing"),
    "a put of a log entry never lands": _strayed("put", LOG, "lost request"),
    "a writer cannot know whether it has committed": _outcome_unknown,
    "a put of a data file is unclear": _data_put_unclear,
    "a data file's put is unclear, and it goes under another name": _counted("data file under another name"),
    "a put lands after a delete of its name": _after_a_delete("late landing"),
    "a put lands once more after it was answered": _strayed("put", "", "lands once more"),
    "a put lands once more, after a delete of its name": _after_a_delete("lands once more"),
    "a delete is carried out once more after it was answered": _deleted_once_more,
    "markers are missing at a rollback, and the table is listed": _counted("table listed for an instant"),
    # tasks
    "a task fails half way": _failed_half_way,
    "a task dies between an ack and its data": _died_between_ack_and_data,
    "both twins of a task succeed": _second_success,
    "a task dies after its success": _success_of_the_dead,
    "a task cannot reach its service, and marks its files itself": _fell_back,
    "a zombie finds its name fenced": _zombie_fenced,
    "a zombie finds its staging closed": _zombie_without_staging,
    "a zombie is refused a marker": _zombie_without_marker,
    "a zombie's file lands during the rollback": _zombie_landed,
    # writers
    "a writer dies while it begins": _befell("is killed", "beginning"),
    "a writer dies while its tasks write": _befell("is killed", "writing"),
    "a writer dies between seal and entry": _befell("is killed", "before its entry"),
    "a writer dies after its entry": _befell("is killed", "after its entry"),
    "a writer dies between its entry and its projection": _unprojected,
    "a writer dies amid the deletes of an overwrite": _died_amid_deletes,
    "a writer dies in its own rollback": _befell("is killed", "in its rollback"),
    "somebody dies in the rollback of another": _ended_while_rolling_back("is killed"),
    "a rollback is brought to its end by another": _ended_by_another("rollback"),
    "a commit is brought to its end by another": _ended_by_another("commit"),
    "a writer is cancelled while it begins": _befell("is cancelled", "beginning"),
    "a writer is cancelled while its tasks write": _befell("is cancelled", "writing"),
    "a writer is cancelled between seal and entry": _befell("is cancelled", "before its entry"),
    "a writer is cancelled after its entry": _befell("is cancelled", "after its entry"),
    "a writer is cancelled in its own rollback": _befell("is cancelled", "in its rollback"),
    "somebody is cancelled in the rollback of another": _ended_while_rolling_back("is cancelled"),
    "a writer stands still while its tasks write": _befell("is stopped", "writing"),
    "a writer stands still between seal and entry": _befell("is stopped", "before its entry"),
    "a writer stands still after its entry": _befell("is stopped", "after its entry"),
    "somebody stands still in the rollback of another": _ended_while_rolling_back("is stopped"),
    "a writer stands still beyond its lease": _stood_still_beyond_its_lease,
    "a writer stands still beyond its lease, and is rolled back": _stood_still_and_was_ended,
    "a living writer is rolled back by name": _living_ended_by_name,
    "a clock is set back in mid job": _clock_set_back,
    "two writers try the same instant": _same_instant,
    "a reserved instant turns out older than the log's newest": _instant_given_up,
    # rivals
    "of two overwrites of a partition one is refused": _conflict,
    "an overwrite commits beside an append, whose files stay": _overwrite_beside_append,
    "a dynamic overwrite leaves alone what only a lost attempt touched": _only_a_lost_attempt,
    "a dynamic overwrite without rows replaces nothing": _empty(dynamic=True),
    "a static overwrite without rows empties the table": _empty(dynamic=False),
    "a clean runs beside an open job": _clean_beside_a_job,
    "a read runs beside an open job": _read_beside_a_job,
}
"""Write jobs on a table."""

FAILURES = (*EVERYWHERE, *OF_SERVERS, *OF_TABLES)
