"""A strict reader of a page: what a browser would have to repair, or a policy to refuse, fails."""

from html.parser import HTMLParser

VOID = {"meta", "link", "input", "br", "line", "rect"}
LINKS = {"href", "src", "action"}


class Markup(HTMLParser):
    """Of a whole page: its text, the rows of its tables, its links and its elements."""

    def __init__(self, html: str) -> None:
        super().__init__()
        assert html.startswith("<!doctype html>")
        self.text = ""
        self.rows: list[str] = []
        self.links: list[str] = []
        self.elements: list[tuple[str, dict[str, str]]] = []
        self._open: list[str] = []
        self.feed(html)
        self.close()
        self.text = " ".join(self.text.split())
        self.rows = [" ".join(row.split()) for row in self.rows]
        assert self._open == []
        ids = self.values("id")
        assert len(ids) == len(set(ids))
        assert set(self.values("aria-labelledby")) | set(self.values("aria-describedby")) <= set(ids)

    def values(self, attribute: str) -> list[str]:
        return [found[attribute] for _, found in self.elements if attribute in found]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        names = [name for name, _ in attrs]
        assert len(names) == len(set(names)), (tag, names)
        assert not [name for name in names if name.startswith("on") or name == "style"], (tag, names)
        found = {name: value or "" for name, value in attrs}
        assert tag != "script" or "src" in found
        self.elements.append((tag, found))
        self.links += [found[name] for name in found if name in LINKS]
        if tag == "tr":
            self.rows.append("")
        if tag not in VOID:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID:
            assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        assert not (data.strip() and self._open[-1:] == ["script"])
        self.text += f" {data}"
        if "tr" in self._open:
            self.rows[-1] += f" {data}"
