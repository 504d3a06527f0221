"""The prose of the product: words that CONTRIBUTING's section on prose replaces, in code and in the pages for users."""

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

BANNED = {
    r"nobody|somebody|anybody|everybody|whoever": "name the actor: the caller, the task, another writer, no process",
    r"tells?|told|telling": "report, return, record, show, send",
    r"beats?|beaten": "heartbeat",
    r"anew": "again",
    r"amid": "during",
    r"in vain": "without result; lost",
    r"meanwhile": "since; in between",
    r"for ever|for good": "permanently",
    r"at hand": "cached, available",
    r"under way": "in flight",
    r"(?<!\.)taken for": "treated as",
    r"farewell": "shutdown error",
    r"dial(?:s|led|ling)?|hang(?:s|ing)? up|hung up": "connect, close",
    r"(?<!there )(?:is|are|was|were|be) no(?! (?:more|longer|less|later|earlier|larger|smaller|other|one)\b)": "is not",
}
"""Regular expressions of whole words, and what to write in their place."""

STORED = re.compile(
    r"data files that nobody committed|`no beat`|beat\.missed|\.tallymark/beat|beat_age_s|\"beat\"|``?beat``?"
    r"|\.tell\b|def tell\b|sink without tell"
)
"""Names that are stored, sent or parsed, or that another library gave; they stay as they are."""

PRODUCT = ("engine", "backends", "spark_glue", "src/tallymark", "bench", "demo", "examples")
PAGES = (
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "README.md",
    "deploy/*",
    "docs/*.md",
    "docs/decisions/*.md",
    "tests/README.md",
)

OLD_WORDS = re.compile(r"\(formerly: |^- Public names, old to new")
"""Lines that give an old word on purpose: the glossary, and the changelog's table of renames."""


def files() -> list[str]:
    listed = subprocess.run(
        ["git", "ls-files", *(f"{folder}/*.py" for folder in PRODUCT), *PAGES],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return listed.stdout.splitlines()


@pytest.mark.parametrize("banned", BANNED)
def test_a_habit_is_not_used(banned):
    pattern = re.compile(rf"\b(?:{banned})\b", re.IGNORECASE)
    found = [
        f"{name}:{number}: {line.strip()}"
        for name in files()
        for number, line in enumerate((ROOT / name).read_text().splitlines(), 1)
        if pattern.search(STORED.sub("", line).replace("_", " "))
        and not OLD_WORDS.search(line)
        and not (name == "CONTRIBUTING.md" and line.startswith("|"))
    ]
    assert not found, f"write {BANNED[banned]!r}:\n" + "\n".join(found)


def test_the_words_are_found_where_they_are_used():
    """The check itself can fail."""
    line = "Whoever is told that nobody beats any more has waited in vain"
    assert sum(bool(re.search(rf"\b(?:{banned})\b", line, re.IGNORECASE)) for banned in BANNED) == 4
