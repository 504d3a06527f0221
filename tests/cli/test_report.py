"""``tallymark report``: one file without references, whose figures are those of the other commands."""

import re

from tests.cli.scene import run, run_json, write


def test_a_report_refers_to_nothing_outside(abandoned, tmp_path):
    file = tmp_path / "flights.html"
    assert run("report", abandoned.folder, "--html", file).output == ""
    html = file.read_text()
    assert re.findall(r"<(?:script|form|a|link|img)\b|\b(?:src|href|action)=|url\(|@import|\bdata-hx", html) == []
    assert "default-src 'none'" in html


def test_the_figures_are_those_of_status_and_the_dead_writer_is_shown(abandoned):
    found, html = run_json("status", abandoned.folder), run("report", abandoned.folder, "--html", "-").stdout
    text = " ".join(re.sub(r"<[^>]+>", " ", html.partition("</style>")[2]).split())
    assert f"Rows {found['rows']:,} Files {found['files']:,} in {found['partitions']:,} partitions Bytes" in text
    assert f"Bytes {found['bytes']:,}" in text
    assert f"at position {found['position']} of the log" in text
    assert f"open {abandoned.instant}" in text
    assert "A rollback would remove the 2 files that it has marked." in text
    assert f"tallymark rollback {found['url']}" in text


def test_a_file_is_replaced_only_by_a_whole_report(tmp_path):
    file = tmp_path / "report.html"
    file.write_text("before")
    failed = run("report", tmp_path / "flights", "--html", file)
    assert (failed.exit_code, file.read_text()) == (1, "before")
    assert failed.stderr.startswith("tallymark: ")
    write(tmp_path / "flights", 1)
    assert run("report", tmp_path / "flights", "--html", file).exit_code == 0
    assert file.read_text().endswith("</html>\n")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["flights", "report.html"]
    failed = run("report", tmp_path / "flights", "--html", tmp_path / "none" / "report.html")
    assert (failed.exit_code, "cannot be written" in failed.stderr) == (1, True)
