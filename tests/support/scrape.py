"""A scrape of this process, as Prometheus makes it: over HTTP, and read by prometheus-client's own parser."""

import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from tallymark import register_metrics


class Scrape:
    """The samples of one scrape, or what they grew by."""

    def __init__(self, values: Mapping[tuple[str, frozenset[tuple[str, str]]], float]) -> None:
        self._values = values

    def value(self, name: str, **labels: str) -> float:
        """KeyError where there is no such sample."""
        return self._values[f"tallymark_{name}", frozenset(labels.items())]

    def total(self, name: str) -> float:
        """Over all labels."""
        return sum(value for (found, _), value in self._values.items() if found == f"tallymark_{name}")

    def since(self, before: "Scrape") -> "Scrape":
        """Other tests count in this process, too."""
        return Scrape({sample: value - before._values.get(sample, 0) for sample, value in self._values.items()})


@contextmanager
def scraping() -> Iterator[Callable[[], Scrape]]:
    """Each call of what is yielded is one scrape."""
    from prometheus_client import CollectorRegistry, start_http_server

    registry = CollectorRegistry()
    register_metrics(registry)
    server, thread = start_http_server(0, addr="127.0.0.1", registry=registry)
    try:
        yield lambda: _scraped(f"http://127.0.0.1:{server.server_port}/metrics")
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


Grown = Callable[[], Scrape]


@contextmanager
def growing() -> Iterator[Grown]:
    """Each call of what is yielded scrapes, and returns what has grown since the block began."""
    with scraping() as scrape:
        before = scrape()
        yield lambda: scrape().since(before)


def _scraped(url: str) -> Scrape:
    from prometheus_client.parser import text_string_to_metric_families

    with urllib.request.urlopen(url, timeout=30) as answer:
        families = list(text_string_to_metric_families(answer.read().decode()))
    samples = [sample for family in families for sample in family.samples]
    return Scrape({(sample.name, frozenset(sample.labels.items())): sample.value for sample in samples})
