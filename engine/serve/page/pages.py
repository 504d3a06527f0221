"""Pages of the service: HTML of the fleet, of a table, of a job and of a file, rendered from their JSON documents.

Text of documents is escaped wherever it is shown. Owns: what a page shows. Does not own: who may see it, and where its
documents come from.
"""

import functools
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.resources import files

from tallymark.engine.documents.explain import ExplainDocument
from tallymark.engine.documents.file_list import DiffDocument, PartitionListDocument
from tallymark.engine.documents.files import FilesDocument
from tallymark.engine.documents.jobs import JobFields, JobsDocument, LossDocument
from tallymark.engine.documents.markers import MarkersDocument
from tallymark.engine.documents.status import StatusDocument
from tallymark.engine.documents.summary import SummaryDocument
from tallymark.engine.documents.timeline import TimelineDocument, shown_scope
from tallymark.engine.errors import MissingExtra
from tallymark.engine.jobs.result import shown_bytes

try:
    import jinja2
except ImportError as error:
    raise MissingExtra("jinja2 is not installed: pip install 'tallymark[serve]'") from error

from tallymark.engine.serve.page.assets import assets
from tallymark.engine.serve.page.charts import commit_chart, share_bar, size_chart

URGENCY = ("unreadable", "dead writer", "small files", "retained files")
"""Kinds of findings, the most urgent first."""

CURES = {"dead writer": "rollback", "retained files": "clean"}
"""The action that cures a finding, by its kind."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PageContext:
    """What a page depends on beside its documents."""

    now: datetime
    """When its documents were made: ages are shown as of it."""
    base_path: str = ""
    """Path below which the service is reached, such as ``/tallymark``; without a slash at its end."""
    csrf: str | None = None
    """What forms and actions of this session send back."""
    token_id: str | None = None
    """The token of the session; None without one."""
    can_operate: bool = False
    actions: Sequence[str] = ()
    """Names of the actions to offer, if the session can operate the table."""
    refresh_s: float = 0
    """Interval in seconds at which the page is refreshed; 0 for a page that is not."""


class Pages:
    """Templates, compiled on their first use. One instance serves all requests."""

    def __init__(self) -> None:
        self._templates = jinja2.Environment(
            loader=jinja2.FunctionLoader(_read),
            autoescape=True,
            undefined=jinja2.StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._templates.filters.update(FILTERS)
        self._templates.globals.update(size_chart=size_chart, commit_chart=commit_chart, cures=CURES, assets=assets())

    def fleet(
        self, summaries: Sequence[SummaryDocument], context: PageContext, problems: Mapping[str, str] | None = None
    ) -> str:
        """Render all tables, those with findings first. ``problems``: why roots could not be searched, by root."""
        return self._render(
            "fleet.html", context, summaries=sorted(summaries, key=_urgency), problems=dict(problems or {})
        )

    def table(
        self,
        id_: str,
        *,
        status: StatusDocument,
        summary: SummaryDocument,
        timeline: TimelineDocument,
        sizes: FilesDocument,
        partitions: PartitionListDocument,
        jobs: JobsDocument,
        diff: DiffDocument | None,
        context: PageContext,
    ) -> str:
        """Render one table. ``timeline`` has its newest entries, ``partitions`` those with the most small files."""
        return self._render(
            "table.html",
            context,
            id=id_,
            status=status,
            summary=summary,
            timeline=timeline,
            sizes=sizes,
            partitions=partitions,
            jobs=jobs,
            diff=diff,
        )

    def unreadable(self, summary: SummaryDocument, context: PageContext) -> str:
        """Render a table that cannot be read, and why."""
        return self._render("unreadable.html", context, summary=summary)

    def table_report(
        self,
        *,
        status: StatusDocument,
        summary: SummaryDocument,
        timeline: TimelineDocument,
        sizes: FilesDocument,
        partitions: PartitionListDocument,
        jobs: JobsDocument,
        now: datetime,
    ) -> str:
        """Render the same as one file, without links, forms and scripts."""
        return self._render(
            "report.html",
            PageContext(now=now),
            status=status,
            summary=summary,
            timeline=timeline,
            sizes=sizes,
            partitions=partitions,
            jobs=jobs,
            style=assets()["page.css"].content.decode(),
        )

    def job(
        self,
        id_: str,
        url: str,
        *,
        job: JobFields,
        loss: LossDocument,
        markers: MarkersDocument,
        context: PageContext,
    ) -> str:
        """Render an open instant. ``markers`` are the first of it."""
        return self._render("job.html", context, id=id_, url=url, job=job, loss=loss, markers=markers)

    def file(self, id_: str, url: str, *, explain: ExplainDocument | None, context: PageContext) -> str:
        """Render the explanation of a file, or without one only the form for its path."""
        return self._render("file.html", context, id=id_, url=url, explain=explain)

    def login(self, error: str | None, context: PageContext) -> str:
        return self._render("login.html", context, error=error)

    def message(self, title: str, text: str, context: PageContext) -> str:
        """Render an error, or any other page that has nothing but text."""
        return self._render("message.html", context, title=title, text=text)

    def _render(self, template: str, context: PageContext, **values: object) -> str:
        return self._templates.get_template(template).render(page=context, **values)


def _read(name: str) -> str:
    return (files(__package__) / "templates" / name).read_text("utf-8")


def _urgency(found: SummaryDocument) -> tuple[int, str]:
    """Return the sort key of a table on the page of the fleet."""
    kinds = [URGENCY.index(each["kind"]) for each in found["findings"]]
    return min(kinds, default=len(URGENCY)), (found["name"] or found["url"]).casefold()


def _count(number: int) -> str:
    return f"{number:,}"


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def _ms(seconds: float) -> str:
    return f"{1000 * seconds:,.1f} ms"


def _span(seconds: float) -> str:
    """Return a length of time in the unit that has one to three digits."""
    for unit, length in (("days", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:,.0f} {unit}"
    return f"{max(seconds, 0):.0f} s"


def _age(time: str, now: datetime) -> str:
    """Return the age of an instant, or of an ISO 8601 time; the text itself if it is neither."""
    found = _time_of(time)
    return time if found is None else f"{_span((now - found).total_seconds())} ago"


def _when(time: str) -> str:
    found = _time_of(time)
    return time if found is None else f"{found:%Y-%m-%d %H:%M:%S} UTC"


def _stamp(time: str) -> str:
    found = _time_of(time)
    return time if found is None else found.isoformat(timespec="seconds")


@functools.lru_cache(maxsize=1_000)
def _time_of(text: str) -> datetime | None:
    try:
        if len(text) == 17 and text.isdecimal():
            return datetime.strptime(f"{text}000", "%Y%m%d%H%M%S%f").replace(tzinfo=UTC)
        return datetime.fromisoformat(text).astimezone(UTC)
    except ValueError:
        return None


FILTERS: dict[str, Callable[..., str]] = {
    "age": _age,
    "count": _count,
    "ms": _ms,
    "percent": _percent,
    "scope": shown_scope,
    "share_bar": share_bar,
    "shell": shlex.quote,
    "size": shown_bytes,
    "span": _span,
    "stamp": _stamp,
    "when": _when,
}
