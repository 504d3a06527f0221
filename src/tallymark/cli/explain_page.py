"""``tallymark explain`` for people."""

from rich.console import Console

from tallymark.cli.explain import ExplainDocument
from tallymark.cli.files_page import size
from tallymark.cli.page import print_table


def show_explain(page: Console, document: ExplainDocument) -> None:
    facts = {
        "file": document["path"],
        "fate": document["fate"] if document["is_there"] else f"{document['fate']}, not there",
        "instant": document["instant"],
        "position": None if document["position"] is None else f"{document['position']:,}",
        "size": _size(document),
        "why": document["why"],
        "next": document["next"],
        "now": document["command"],
    }
    rows = [(name, value) for name, value in facts.items() if value is not None]
    print_table(page, ["", ""], rows, folding=(1,), has_header=False)


def _size(document: ExplainDocument) -> str | None:
    if document["rows"] is None or document["bytes"] is None:
        return None
    return f"{document['rows']:,} rows, {size(document['bytes'])}"
