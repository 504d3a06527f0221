"""Pages from documents: valid HTML within a strict policy, in which every text of a table stays text."""

import sys
from collections.abc import Callable
from importlib.resources import files
from typing import Any

import pytest

from tallymark.engine.errors import MissingExtra
from tallymark.engine.serve.page.assets import assets
from tallymark.engine.serve.page.pages import PageContext, Pages
from tests.engine.serve.page.documents import (
    HOSTILE,
    INSTANT,
    LIVE,
    LOSS,
    NOW,
    finding,
    golden,
    hostile,
    job,
    summary,
    table,
    unreadable,
)
from tests.engine.serve.page.markup import Markup

PAGES = Pages()
READER = PageContext(now=NOW, base_path="/lake", csrf="c5rf", token_id="3fa91c07", refresh_s=5)
OPERATOR = PageContext(now=NOW, base_path="/lake", csrf="c5rf", can_operate=True, actions=("rollback", "clean"))

EXPLAINED: Any = {
    **golden("explain"),
    "made_of": ["month=3/a.parquet"],
    "filled_into": ["month=3/b.parquet"],
    "command": "tallymark clean s3://lake/x",
    "until": "2026-11-28T03:05:47+00:00",
}

Change = Callable[[Any], Any]
RENDERED: dict[str, Callable[[Change, PageContext], str]] = {
    "fleet": lambda change, context: PAGES.fleet(change([summary("flights"), unreadable("feeds")]), context),
    "table": lambda change, context: PAGES.table(change("id"), **change(table()), context=context),
    "unreadable": lambda change, context: PAGES.unreadable(change(unreadable("feeds")), context),
    "job": lambda change, context: PAGES.job(
        change("id"), change("s3://lake/x"), job=change(job()), loss=change(LOSS), markers=change(golden("markers")),
        context=context,
    ),
    "file": lambda change, context: PAGES.file(
        change("id"), change("s3://lake/x"), explain=change(EXPLAINED), context=context
    ),
    "login": lambda change, context: PAGES.login(change("The token has expired."), context),
    "message": lambda change, context: PAGES.message(change("Not found"), change("There is no such table."), context),
}  # fmt: skip


def same(document: Any) -> Any:
    return document


@pytest.mark.parametrize("context", [READER, OPERATOR], ids=["reader", "operator"])
@pytest.mark.parametrize("name", RENDERED)
def test_a_page_is_valid_and_all_its_links_are_below_the_base_path(name, context):
    page = Markup(RENDERED[name](same, context))
    assert [link for link in page.links if not link.startswith(("/lake/", "#main"))] == []
    assert [tag for tag, _ in page.elements].count("h1") == 1
    assert "/lake/" in page.links


@pytest.mark.parametrize("name", RENDERED)
def test_script_in_any_text_of_a_document_stays_text(name):
    page = Markup(RENDERED[name](hostile, OPERATOR))
    assert HOSTILE in page.text
    assert "b" not in {tag for tag, _ in page.elements}
    assert all(link.startswith(("/lake/", "#main")) for link in page.links)


def test_the_scripts_and_styles_of_a_page_are_assets_by_their_version():
    page = Markup(PAGES.fleet([], READER))
    static = [link.removeprefix("/lake/static/") for link in page.links if "/static/" in link]
    assert sorted(static) == sorted(f"{name}?v={assets()[name].version}" for name in assets() if name != "LICENSE")
    folder = files("tallymark.engine.serve.page") / "static"
    assert {each.name for each in folder.iterdir()} == set(assets())


def test_a_fleet_shows_the_most_urgent_tables_first_and_sums_the_readable_ones():
    late = summary("b", findings=[finding("retained files")])
    dead = summary("c", dead_writers=2, findings=[finding("small files"), finding("dead writer")])
    page = Markup(PAGES.fleet([summary("a"), late, unreadable("z"), dead], READER))
    shown = [link.removeprefix("/lake/tables/id-") for link in page.links if "/tables/" in link]
    assert shown == ["z", "c", "b", "a"]
    assert page.rows[1] == "z s3://lake/z not readable: UnsupportedTable"
    assert "Tables 4 With findings 3 Dead writers 2 Files 36 18 small Bytes 30.0 MiB Retained 9.0 MiB" in page.text
    assert "4 min ago" in page.text


def test_a_fleet_without_tables_says_so():
    assert "No tables were found below the roots" in Markup(PAGES.fleet([], READER)).text


def test_a_table_in_which_nothing_was_committed_has_a_page():
    found = table()
    found["status"].update(position=0, newest_entry=None, files=0, partitions=0)
    found["sizes"].update(files=0, buckets=[])
    found.update(timeline={"url": "", "entries": []}, jobs={"url": "", "at": "", "jobs": []}, diff=None)
    text = Markup(PAGES.table("id", **found, context=READER)).text
    assert "No entries: nothing has been committed yet." in text
    assert "The table has no files." in text


def test_the_timeline_has_open_instants_first_and_then_the_newest_entries():
    rows = Markup(PAGES.table("id", **table(), context=READER)).rows
    newest = next(number for number, row in enumerate(rows) if row.startswith("3 "))
    assert f"open {INSTANT}" in rows[newest - 2]
    assert "A rollback would remove the 3 files that it has marked." in rows[newest - 2]
    assert "alive 3 files marked." in rows[newest - 1]
    assert [row.split()[0] for row in rows[newest : newest + 3]] == ["3", "2", "1"]


def test_a_diff_shows_the_files_of_both_kinds():
    text = Markup(PAGES.table("id", **table(), context=READER)).text
    assert "From position 1 to 3: 2 files added (1.8 KiB, 6 rows), 1 removed (900 B, 3 rows)." in text


@pytest.mark.parametrize(("context", "expected"), [(READER, []), (OPERATOR, ["rollback", "rollback", "clean"])])
def test_actions_are_offered_to_those_who_can_operate_the_table(context, expected):
    page = Markup(PAGES.table("id", **table(), context=context))
    assert page.values("data-action") == expected
    assert set(page.values("data-table")) == ({"id-flights"} if expected else set())


def test_a_job_shows_its_acks_where_it_uses_the_service_and_storage_otherwise():
    def shown(**values: Any) -> str:
        markers = golden("markers")
        html = PAGES.job("id", "s3://lake/x", job=job(**values), loss=LOSS, markers=markers, context=OPERATOR)
        return Markup(html).text

    assert "Acks a second 212.4 last ten seconds Ack, median 6.1 ms Ack, p99 none yet" in shown(live=LIVE)
    stored = shown(markers_s=41.5)
    assert "Markers a second 41.5 in storage Last heartbeat 4 min ago" in stored
    assert "A rollback would remove 3 files from 1 partitions" in stored
    assert "tallymark rollback s3://lake/x" in stored
    assert "If it died now" not in shown(decision="commit", position=4, is_over=True)


def test_only_a_page_with_an_interval_is_refreshed():
    assert Markup(PAGES.fleet([], READER)).values("data-hx-trigger") == ["every 5s, refresh"]
    assert Markup(PAGES.login(None, OPERATOR)).values("data-hx-trigger") == []


def test_without_jinja2_the_error_names_the_extra(monkeypatch):
    monkeypatch.delitem(sys.modules, "tallymark.engine.serve.page.pages")
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(MissingExtra, match=r"pip install 'tallymark\[serve\]'"):
        import tallymark.engine.serve.page.pages  # noqa: F401
