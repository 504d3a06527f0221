"""Our view of a table on a store that is far away: what it takes to be ready there, and how many requests."""

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.request import urlopen

from tallymark.backends.s3 import S3Stores
from tallymark.bench.loopback import server
from tallymark.bench.loopback.objects import BUCKET
from tallymark.bench.peers.objects import Obstore
from tallymark.bench.views.ground import bookkeeping
from tallymark.bench.views.held import options_of
from tallymark.bench.views.held_side import HeldSide
from tallymark.bench.views.listing_sides import LATENCY_S
from tallymark.bench.views.side import Opening, OpenSide

PREFIX = "table"

COPIES = 32
"""Objects that are put at once."""

KEPT_BYTES_MAX = 1 << 30
"""Of the harness's own server: what a view starts from has to be read again, however large it is."""

SEEN_TIMEOUT_S = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class FarSide:
    """The near side's table, copied: the bookkeeping of ours, and no data files."""

    name: str
    title: str
    near: HeldSide
    table: Path

    @contextmanager
    def opened(self) -> Iterator[tuple[OpenSide, Opening]]:
        with server(LATENCY_S, kept_bytes_max=KEPT_BYTES_MAX) as endpoint:
            self._copy(endpoint)
            told = {**self.near.told, "table": f"s3://{BUCKET}/{PREFIX}", "endpoint": endpoint}
            _seen(endpoint)
            with replace(self.near, name=self.name, told=told, is_ready_only=True).opened() as (far, opening):
                yield far, replace(opening, requests=_seen(endpoint), grown_bytes=None)

    def _copy(self, endpoint: str) -> None:
        options = options_of({"endpoint": endpoint})
        store = Obstore(S3Stores(BUCKET, options).make(options.request_timeout_s), PREFIX)

        def put(path: Path) -> None:
            store.put(path.relative_to(self.table).as_posix(), path.read_bytes())

        with ThreadPoolExecutor(COPIES) as threads:
            for _ in threads.map(put, bookkeeping(self.table)):
                pass


def _seen(endpoint: str) -> dict[str, int]:
    """Requests by kind, since this was last asked."""
    with urlopen(f"{endpoint}/{BUCKET}?seen", timeout=SEEN_TIMEOUT_S) as answer:  # noqa: S310 our own server
        found: dict[str, int] = json.load(answer)
    return {name.removeprefix("requests_"): count for name, count in found.items()}
