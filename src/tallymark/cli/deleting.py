"""Progress line of a long delete on a terminal; no output elsewhere."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def shown_deletes() -> Iterator[Callable[[int, int], None] | None]:
    """Yield a callback for deleted files within the block; None where stderr is not a terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("deleting"), BarColumn(), MofNCompleteColumn(), TextColumn("files"), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as page:
        line = page.add_task("deleting", total=None, visible=False)
        yield lambda done, total: page.update(line, completed=done, total=total, visible=True)
