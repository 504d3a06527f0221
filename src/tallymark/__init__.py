"""Tallymark: write jobs of a data lake that leave exactly the files they committed.

    tallymark.write(df, url, mode="append")         PySpark: write a DataFrame, commit it
    tallymark.plan(df, url, mode="append")          PySpark: what that write would do
    tallymark.delete(spark, url, where="id = 7")    PySpark: delete rows by a predicate, commit it
    tallymark.read(spark, url)                      PySpark: a native scan of exactly the committed files
    tallymark.reading(spark, url)                   PySpark: the same for a block, in which no clean takes them away
    tallymark.hudi.markers(spark, roots=[...])      PySpark: markers of Hudi's own writers
    tallymark.open_table(url)                       any engine: jobs, tickets, reports, commit, rollback, clean
    tallymark.write_task(ticket, batches, task=n)   any engine: what a task runs
    tallymark.open_view(ticket)                     any engine: what the table held when the job began, for a task
    tallymark.open_marker_engine(backend)           the marker engine alone
    tallymark.open_backend(url)                     storage

Each name is imported on first use, so a name needs neither Spark nor the libraries of storage that it does not use.
``__init__.pyi`` lists the names, once each, for type checkers and for this module.
"""

import importlib
import pkgutil
from typing import Any

__version__ = "0.1.0"


def _homes() -> dict[str, str]:
    """Return the module of each public name: the stub has one line ``from MODULE import NAME as NAME`` per name."""
    stub = pkgutil.get_data(__name__, "__init__.pyi") or b""  # also from a zip file
    imports = [line.split() for line in stub.decode().splitlines() if line.startswith("from ")]
    return {name: home for _, home, _, name, *_ in imports}


_HOME_OF = _homes()

__all__ = sorted(_HOME_OF)


def __getattr__(name: str) -> Any:
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module 'tallymark' has no attribute {name!r}")
    is_module = home == __name__
    value = importlib.import_module(f"{home}.{name}") if is_module else getattr(importlib.import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME_OF})
