"""An answer for people: a table for each trial, below what is suspected."""

from rich import box
from rich.console import Console
from rich.table import Table

from tallymark.bench.defects.answer import DefectsAnswer, Finding

METHOD = """\
What reading the source of Hudi's timeline server suggests, tried on the released one, which stands alone with marker
requests on and its defaults else, on a local disk; and on Tallymark's server in the same way. "Seen" says whether the
suspicion came true. "No" is no proof: it did not come true in what was tried.
"""


def show(page: Console, answer: DefectsAnswer) -> None:
    page.print(f"{answer.machine}\n")
    page.print(METHOD)
    for trial, suspected in answer.suspected.items():
        page.print(f"{trial}: {suspected}")
        page.print(_table([finding for finding in answer.findings if finding.trial == trial]))


def _table(findings: list[Finding]) -> Table:
    page = Table(box=box.SIMPLE_HEAD)
    for name, ratio in (("", 2), ("what was tried", 4), ("seen", 1), ("what was seen", 5)):
        page.add_column(name, ratio=ratio)
    for finding in findings:
        page.add_row(finding.side, finding.tried, finding.shown, finding.seen)
    return page
