"""Failures that a run contained, counted from its history. A campaign in which one never occurs has not tested it.

Each failure has a name that describes it, and a function that counts it. ``docs/failure-modes.md`` describes what
becomes of each, by the same names.
"""

from collections import Counter
from collections.abc import Callable, Mapping

from tests.simulation.counts import lives, readers
from tests.simulation.counts.fills import (
    died_with_old_rows,
    ended_while_rewriting,
    fill,
    happened_while_rewriting,
    lost_to,
    overwrite_lost_to_a_fill,
    unclear_while_rewriting,
    zombie_with_old_rows,
)
from tests.simulation.counts.readers import clean_beside, leased_older, outlasted, reader_died
from tests.simulation.counts.requests import (
    MARKERS,
    after_a_delete,
    counted,
    data_put_unclear,
    deleted_once_more,
    flush_failed,
    gave_up_in_flight,
    requested_in_flight,
    strayed,
    stuck,
    taken_over,
    two_servers,
)
from tests.simulation.counts.rivals import (
    clean_beside_a_job,
    conflict,
    empty,
    files_expired,
    named_partition_emptied,
    only_a_lost_attempt,
    outcome_unknown,
    overwrite_beside_append,
    overwrite_of_what_was_read,
    part_lost_to_a_year,
    read_beside_a_job,
    run_again_for_good,
    run_again_for_nothing,
    twins_met,
    year_beside_a_longer_one,
    year_lost_to_a_part,
)
from tests.simulation.counts.writers import (
    clock_set_back,
    died_between_ack_and_data,
    died_between_put_and_ack,
    died_during_deletes,
    ended_by_another,
    ended_while_rolling_back,
    failed_half_way,
    fell_back,
    flag_too_late,
    in_flush,
    instant_given_up,
    living_ended_by_name,
    paused_and_was_ended,
    paused_beyond_its_lease,
    process_events,
    same_instant,
    second_success,
    success_of_the_dead,
    unprojected,
    zombie_fenced,
    zombie_landed,
    zombie_without_marker,
    zombie_without_staging,
)
from tests.simulation.history_index import HistoryIndex
from tests.simulation.markers.marker_world import MarkerOutcome
from tests.simulation.world import Outcome
from tests.table_invariants import LOG


def occurrences(outcome: Outcome | MarkerOutcome) -> Counter[str]:
    """How often each failure occurred in the run; those that did not are 0."""
    index = HistoryIndex(outcome)
    special = OF_TABLES if isinstance(outcome, Outcome) else OF_SERVERS
    return Counter({name: count(index) for name, count in (EVERYWHERE | special).items()})


def missing(occurred: Mapping[str, int]) -> list[str]:
    """The failures that never occurred."""
    return [name for name in FAILURES if not occurred.get(name)]


EVERYWHERE: dict[str, Callable[[HistoryIndex], int]] = {
    "a put of markers never lands": strayed("put", MARKERS, "lost request"),
    "a put of markers lands, and its answer is lost": strayed("put", MARKERS, "lost answer"),
    "a put of markers lands after it was given up": strayed("put", MARKERS, "late landing"),
    "a put of markers hangs, and others go on": stuck(itself=False),
    "a put of markers hangs, and its repeat lands": stuck(itself=True),
    "a put of markers is throttled": strayed("put", MARKERS, "throttled"),
    "a flush fails, and so do its requests": flush_failed,
    "a request takes far longer than usual": lambda index: index.counts["tail before"] + index.counts["tail after"],
    "a delete fails after some of its names": counted("delete failed half way"),
    "an entry of the log is archived": counted("log entry archived"),
    "a listing of several pages runs beside deletes": counted("listing in pages beside deletes"),
    "an ack is lost with its connection, and requested again": counted("answer lost, asked again"),
    "a connection is reset": counted("connection reset"),
    "a connection is half open": counted("frame into a half-open connection"),
    "hosts cannot reach each other": counted("hosts cut off"),
    "a service refuses requests beyond its limit": counted("refused as overloaded"),
    "a service dies with a flush in flight": in_flush("is killed"),
    "a service dies between a put of markers and its acks": died_between_put_and_ack,
    "a service is cancelled with a flush in flight": in_flush("is cancelled"),
}
"""Requests to storage and between processes, in runs of every kind."""

OF_SERVERS: dict[str, Callable[[HistoryIndex], int]] = {
    "a marker is requested again while it is in flight": requested_in_flight,
    "a requester gives up while its marker is in flight": gave_up_in_flight,
    "a server continues an instant of another server": taken_over,
    "two servers of one instant put markers at once": two_servers,
}
"""Servers of markers without a table."""

OF_TABLES: dict[str, Callable[[HistoryIndex], int]] = {
    "a put of a log entry is unclear": strayed("put", LOG, "lost answer", "late landing"),
    "a put of a log entry never lands": strayed("put", LOG, "lost request"),
    "a writer cannot know whether it has committed": outcome_unknown,
    "a put of a data file is unclear": data_put_unclear,
    "a data file's put is unclear, and it goes under another name": counted("data file under another name"),
    "a put lands after a delete of its name": after_a_delete("late landing"),
    "a put lands once more after it was answered": strayed("put", "", "lands once more"),
    "a put lands once more, after a delete of its name": after_a_delete("lands once more"),
    "a delete is carried out once more after it was answered": deleted_once_more,
    "markers are missing at a rollback, and the table is listed": counted("table listed for an instant"),
    # tasks
    "a task fails after some of its rows": failed_half_way,
    "a task dies between an ack and its data": died_between_ack_and_data,
    "both twins of a task succeed": second_success,
    "a task dies after its success": success_of_the_dead,
    "a task cannot reach its service, and marks its files itself": fell_back,
    "a flag of direct markers lands when its job has put the seal": flag_too_late,
    "a zombie finds its name fenced": zombie_fenced,
    "a zombie finds its staging closed": zombie_without_staging,
    "a zombie is refused a marker": zombie_without_marker,
    "a zombie's file lands during the rollback": zombie_landed,
    # writers
    "a writer dies while it starts": process_events("is killed", "beginning"),
    "a writer dies while its tasks write": process_events("is killed", "writing"),
    "a writer dies between seal and entry": process_events("is killed", "before its entry"),
    "a writer dies after its entry": process_events("is killed", "after its entry"),
    "a writer dies between its entry and its projection": unprojected,
    "a writer dies during the deletes of an overwrite": died_during_deletes,
    "a writer dies in its own rollback": process_events("is killed", "in its rollback"),
    "a process dies while it rolls back another writer": ended_while_rolling_back("is killed"),
    "a rollback is finished by another process": ended_by_another("rollback"),
    "a commit is finished by another process": ended_by_another("commit"),
    "a writer is cancelled while it starts": process_events("is cancelled", "beginning"),
    "a writer is cancelled while its tasks write": process_events("is cancelled", "writing"),
    "a writer is cancelled between seal and entry": process_events("is cancelled", "before its entry"),
    "a writer is cancelled after its entry": process_events("is cancelled", "after its entry"),
    "a writer is cancelled in its own rollback": process_events("is cancelled", "in its rollback"),
    "a process is cancelled while it rolls back another writer": ended_while_rolling_back("is cancelled"),
    "a writer pauses while its tasks write": process_events("is stopped", "writing"),
    "a writer pauses between seal and entry": process_events("is stopped", "before its entry"),
    "a writer pauses after its entry": process_events("is stopped", "after its entry"),
    "a process pauses while it rolls back another writer": ended_while_rolling_back("is stopped"),
    "a writer pauses beyond its lease": paused_beyond_its_lease,
    "a writer pauses beyond its lease, and is rolled back": paused_and_was_ended,
    "a living writer is rolled back by name": living_ended_by_name,
    "a clock is set back during a job": clock_set_back,
    "two writers try the same instant": same_instant,
    "a reserved instant turns out older than the log's newest": instant_given_up,
    # rivals
    "of two overwrites of a partition one is refused": conflict,
    "an overwrite of a year loses to one of some of its months": year_lost_to_a_part,
    "an overwrite within a year loses to one of all of it": part_lost_to_a_year,
    "an overwrite of a year keeps another year whose number starts with the same digits": year_beside_a_longer_one,
    "an overwrite commits beside an append, whose files stay": overwrite_beside_append,
    "a dynamic overwrite keeps partitions that only a lost attempt wrote to": only_a_lost_attempt,
    "a dynamic overwrite without rows replaces nothing": empty(dynamic=True),
    "a static overwrite without rows empties the table": empty(dynamic=False),
    "an overwrite of a named partition without rows empties it": named_partition_emptied,
    "an overwrite of what was read commits, and later appends stay": overwrite_of_what_was_read,
    "a write is run again after it was committed, and does nothing": run_again_for_nothing,
    "a write is run again after it was not, and commits": run_again_for_good,
    "two runs of one write meet at the commit, and one counts": twins_met,
    # fills
    "an append fills a small file": fill,
    "an append leaves a small file to another that is filling it": counted("small files left to others"),
    "of two appends that fill one small file the second commits its own rows": lost_to("append"),
    "an append loses the small file it fills to an overwrite, and commits its own rows": lost_to("overwrite"),
    "an overwrite is refused, since an append has filled a file that it replaces": overwrite_lost_to_a_fill,
    "a small file is deleted before its rows are read": counted("small file gone"),
    "a task dies with a small file's rows": died_with_old_rows,
    "a zombie publishes a small file's rows too late": zombie_with_old_rows,
    "the put of a rewritten lost fill is unclear": unclear_while_rewriting,
    "a writer dies while it rewrites a lost fill": happened_while_rewriting("is killed"),
    "a writer is cancelled while it rewrites a lost fill": happened_while_rewriting("is cancelled"),
    "a writer pauses while it rewrites a lost fill": happened_while_rewriting("is stopped"),
    "a writer is rolled back by another while it rewrites a lost fill": ended_while_rewriting,
    # visitors
    "a clean expires kept files": files_expired,
    "a clean runs beside an open job": clean_beside_a_job,
    "a read runs beside an open job": read_beside_a_job,
    # readers under leases
    "files are replaced that a reader's lease protects": outlasted,
    "a reader takes its lease on files that were replaced before": leased_older,
    "a clean commits while a reader's lease protects replaced files": clean_beside,
    "a reader dies with its lease": reader_died,
    # tables that are replaced, and markers that others have changed
    "a table is removed and made again beside open jobs": counted("table removed beside open jobs"),
    "an older copy of a table is restored beside open jobs": counted("table restored beside open jobs"),
    "a table is replaced after a job has died": counted("table replaced after a death"),
    "a job that outlives its table learns it": lives.learned,
    "an entry of a job that outlives its table is void": lives.void_entries,
    "an entry lands beyond the end of an older copy": counted("entry beyond the end of an older copy"),
    "markers and lists of fences name foreign files": counted("foreign names beside markers"),
    "a segment is emptied": counted("segments emptied"),
    "a segment loses its last byte": counted("segments cut"),
    "all segments of a job are lost": counted("segments lost"),
    "heartbeats of a job do not reach storage, while its markers do": counted("heartbeat lost"),
    # views
    "a view answers while its log goes on": readers.answered_behind,
    "a view answers for an older position": readers.answered_older,
    "a view is queried for a position that a clean has expired": readers.turned_away,
    "a process that keeps a view pauses": readers.viewer_paused,
    "a writer puts a checkpoint": readers.checkpoint,
    "a writer dies while it puts a checkpoint": readers.died_during_a_checkpoint,
}
"""Write jobs on a table."""

FAILURES = (*EVERYWHERE, *OF_SERVERS, *OF_TABLES)
