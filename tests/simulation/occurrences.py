"""Failures that a run contained, counted from its history. A campaign in which one never occurs has not tested it.

Each failure has a name that describes it, and a function that counts it. ``docs/failure-modes.md`` describes what
becomes of each, by the same names.
"""

from collections import Counter
from collections.abc import Callable, Mapping

from tests.simulation.counts import changes, fills, groups, lives, readers, requests, rivals, writers
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
    "a put of markers never lands": requests.strayed("put", requests.MARKERS, "lost request"),
    "a put of markers lands, and its answer is lost": requests.strayed("put", requests.MARKERS, "lost answer"),
    "a put of markers lands after it was given up": requests.strayed("put", requests.MARKERS, "late landing"),
    "a put of markers hangs, and others go on": requests.stuck(itself=False),
    "a put of markers hangs, and its repeat lands": requests.stuck(itself=True),
    "a put of markers is throttled": requests.strayed("put", requests.MARKERS, "throttled"),
    "a flush fails, and so do its requests": requests.flush_failed,
    "a request takes far longer than usual": lambda index: index.counts["tail before"] + index.counts["tail after"],
    "a delete fails after some of its names": requests.counted("delete failed half way"),
    "an entry of the log is archived": requests.counted("log entry archived"),
    "a listing of several pages runs beside deletes": requests.counted("listing in pages beside deletes"),
    "an ack is lost with its connection, and requested again": requests.counted("answer lost, asked again"),
    "a connection is reset": requests.counted("connection reset"),
    "a connection is half open": requests.counted("frame into a half-open connection"),
    "hosts cannot reach each other": requests.counted("hosts cut off"),
    "a service refuses requests beyond its limit": requests.counted("refused as overloaded"),
    "a service dies with a flush in flight": writers.in_flush("is killed"),
    "a service dies between a put of markers and its acks": writers.died_between_put_and_ack,
    "a service is cancelled with a flush in flight": writers.in_flush("is cancelled"),
}
"""Requests to storage and between processes, in runs of every kind."""

OF_SERVERS: dict[str, Callable[[HistoryIndex], int]] = {
    "a marker is requested again while it is in flight": requests.requested_in_flight,
    "a requester gives up while its marker is in flight": requests.gave_up_in_flight,
    "a server continues an instant of another server": requests.taken_over,
    "two servers of one instant put markers at once": requests.two_servers,
}
"""Servers of markers without a table."""

OF_TABLES: dict[str, Callable[[HistoryIndex], int]] = {
    "a put of a log entry is unclear": requests.strayed("put", LOG, "lost answer", "late landing"),
    "a put of a log entry never lands": requests.strayed("put", LOG, "lost request"),
    "a writer cannot know whether it has committed": rivals.ended("CommitUnknown"),
    "a put of a data file is unclear": requests.data_put_unclear,
    "a data file's put is unclear, and it goes under another name": requests.counted("data file under another name"),
    "a put lands after a delete of its name": requests.after_a_delete("late landing"),
    "a put lands once more after it was answered": requests.strayed("put", "", "lands once more"),
    "a put lands once more, after a delete of its name": requests.after_a_delete("lands once more"),
    "a delete is carried out once more after it was answered": requests.deleted_once_more,
    "markers are missing at a rollback, and the table is listed": requests.counted("table listed for an instant"),
    # tasks
    "a task fails after some of its rows": writers.failed_half_way,
    "a task dies between an ack and its data": writers.died_between_ack_and_data,
    "both twins of a task succeed": writers.second_success,
    "a task dies after its success": writers.success_of_the_dead,
    "a task cannot reach its service, and marks its files itself": writers.fell_back,
    "a service outside the driver dies and starts again": requests.counted("service started again"),
    "a service outside the driver decides a commit": requests.counted("commit decided by a service"),
    "a service outside the driver does not say that it has decided a commit": requests.counted(
        "commit without an answer"
    ),
    "a flag of direct markers lands when its job has put the seal": writers.flag_too_late,
    "a zombie finds its name fenced": writers.zombie_fenced,
    "a zombie finds its staging closed": writers.zombie_without_staging,
    "a zombie is refused a marker": writers.zombie_without_marker,
    "a zombie's file lands during the rollback": writers.zombie_landed,
    # writers
    "a writer dies while it starts": writers.process_events("is killed", "beginning"),
    "a writer dies while its tasks write": writers.process_events("is killed", "writing"),
    "a writer dies between seal and entry": writers.process_events("is killed", "before its entry"),
    "a writer dies after its entry": writers.process_events("is killed", "after its entry"),
    "a writer dies between its entry and its projection": writers.unprojected,
    "a writer dies during the deletes of an overwrite": writers.died_during_deletes,
    "a writer dies in its own rollback": writers.process_events("is killed", "in its rollback"),
    "a process dies while it rolls back another writer": writers.ended_while_rolling_back("is killed"),
    "a rollback is finished by another process": writers.ended_by_another("rollback"),
    "a commit is finished by another process": writers.ended_by_another("commit"),
    "a writer is cancelled while it starts": writers.process_events("is cancelled", "beginning"),
    "a writer is cancelled while its tasks write": writers.process_events("is cancelled", "writing"),
    "a writer is cancelled between seal and entry": writers.process_events("is cancelled", "before its entry"),
    "a writer is cancelled after its entry": writers.process_events("is cancelled", "after its entry"),
    "a writer is cancelled in its own rollback": writers.process_events("is cancelled", "in its rollback"),
    "a process is cancelled while it rolls back another writer": writers.ended_while_rolling_back("is cancelled"),
    "a writer pauses while its tasks write": writers.process_events("is stopped", "writing"),
    "a writer pauses between seal and entry": writers.process_events("is stopped", "before its entry"),
    "a writer pauses after its entry": writers.process_events("is stopped", "after its entry"),
    "a process pauses while it rolls back another writer": writers.ended_while_rolling_back("is stopped"),
    "a writer pauses beyond its lease": writers.paused_beyond_its_lease,
    "a writer pauses beyond its lease, and is rolled back": writers.paused_and_was_ended,
    "a living writer is rolled back by name": writers.living_ended_by_name,
    "a clock is set back during a job": writers.clock_set_back,
    "two writers try the same instant": requests.counted("reservation taken"),
    "a reserved instant turns out to have been used": writers.instant_given_up,
    # rivals
    "of two overwrites of a partition one is refused": rivals.ended("ConflictError"),
    "an overwrite of a year loses to one of some of its months": rivals.year_lost_to_a_part,
    "an overwrite within a year loses to one of all of it": rivals.part_lost_to_a_year,
    "an overwrite of a year keeps another year whose number starts with the same digits": rivals.year_beside_longer_one,
    "an overwrite commits beside an append, whose files stay": rivals.overwrite_beside_append,
    "a dynamic overwrite keeps partitions that only a lost attempt wrote to": rivals.only_a_lost_attempt,
    "a dynamic overwrite without rows replaces nothing": rivals.empty(dynamic=True),
    "a static overwrite without rows empties the table": rivals.empty(dynamic=False),
    "an overwrite of a named partition without rows empties it": rivals.named_partition_emptied,
    "an overwrite of what was read commits, and later appends stay": rivals.overwrite_of_what_was_read,
    "a write is run again after it was committed, and does nothing": rivals.run_again_for_nothing,
    "a write is run again after it was not, and commits": rivals.run_again_for_good,
    "two runs of one write meet at the commit, and one counts": rivals.twins_met,
    # commits that are decided together
    "commits of one process share an entry of the log": groups.shared_entries,
    "the put of an entry that decides several commits is unclear": groups.unclear,
    "of jobs of one process one is rolled back by another process, and the others commit together": groups.one_ended,
    # streams
    "a driver of a stream dies": groups.stream_happened("is killed"),
    "a driver of a stream pauses": groups.stream_happened("is stopped"),
    "an append to a stream is repeated": requests.counted("append repeated"),
    "an append is repeated that was committed, and nothing is written": requests.counted(
        "repeated append was committed"
    ),
    "an append finds at its commit that its first entry has landed": requests.counted("append met its first entry"),
    "an append fails with an earlier one of its producer": requests.counted("append failed with an earlier one"),
    # fills
    "an append fills a small file": fills.fill,
    "an append leaves a small file to another that is filling it": requests.counted("small files left to others"),
    "of two appends that fill one small file the second commits its own rows": fills.lost_to("append"),
    "an append loses the small file it fills to an overwrite, and commits its own rows": fills.lost_to("overwrite"),
    "an overwrite is refused, since an append has filled a file that it replaces": fills.overwrite_lost_to_a_fill,
    "a small file is deleted before its rows are read": requests.counted("small file gone"),
    "a task dies with a small file's rows": fills.died_with_old_rows,
    "a zombie publishes a small file's rows too late": fills.zombie_with_old_rows,
    "the put of a rewritten lost fill is unclear": fills.unclear_while_rewriting,
    "a writer dies while it rewrites a lost fill": fills.happened_while_rewriting("is killed"),
    "a writer is cancelled while it rewrites a lost fill": fills.happened_while_rewriting("is cancelled"),
    "a writer pauses while it rewrites a lost fill": fills.happened_while_rewriting("is stopped"),
    "a writer is rolled back by another while it rewrites a lost fill": fills.ended_while_rewriting,
    # writes by key
    "a write by key changes rows of a file": changes.changed,
    "rows are added between a lookup of keys and the commit": changes.beside_added_rows,
    "a write by key is refused, since another has added one of its keys": changes.refused(changes.LATE),
    "a write by key is refused, since another has replaced a file of its keys": changes.refused(changes.REPLACED),
    "a write by key is refused, since its input was not the same": changes.refused(changes.DRIFTED),
    "a task dies while it stores keys or looks them up": changes.died_with_keys,
    # visitors
    "a clean expires kept files": rivals.files_expired,
    "a clean runs beside an open job": rivals.beside_a_job("clean", who="visitor"),
    "a read runs beside an open job": rivals.beside_a_job("read"),
    # readers under leases
    "files are replaced that a reader's lease protects": readers.outlasted,
    "a reader takes its lease on files that were replaced before": readers.leased_older,
    "a clean commits while a reader's lease protects replaced files": readers.clean_beside,
    "a reader dies with its lease": readers.reader_died,
    # tables that are replaced, and markers that others have changed
    "a table is removed and made again beside open jobs": requests.counted("table removed beside open jobs"),
    "an older copy of a table is restored beside open jobs": requests.counted("table restored beside open jobs"),
    "a table is replaced after a job has died": requests.counted("table replaced after a death"),
    "a job that outlives its table learns it": lives.learned,
    "an entry of a job that outlives its table is void": lives.void_entries,
    "an entry lands beyond the end of an older copy": requests.counted("entry beyond the end of an older copy"),
    "markers and lists of fences name foreign files": requests.counted("foreign names beside markers"),
    "a segment is emptied": requests.counted("segments emptied"),
    "a segment loses its last byte": requests.counted("segments cut"),
    "all segments of a job are lost": requests.counted("segments lost"),
    "heartbeats of a job do not reach storage, while its markers do": requests.counted("heartbeat lost"),
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
