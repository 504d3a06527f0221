"""Targets of the load generator that answer lookups; each blocks until the whole answer is there."""

import json
from collections.abc import Iterator
from itertools import cycle, islice
from pathlib import Path
from random import Random

from tallymark.bench.load import Target
from tallymark.bench.views.lookup import Lookup

WAIT_S = 30.0
"""For an answer of ours: the client's bound must not lose a late one."""


class WrongAnswer(Exception):
    """An answer names fewer files than there are."""


class LookupTarget:
    """One connection that repeats the lookups of a file, from a random one on."""

    style = "thread"

    def __init__(self, target: Target, series: int) -> None:
        found = json.loads(Path(target["lookups"]).read_text()) if "lookups" in target else []
        first = Random(series).randrange(len(found) or 1)  # noqa: S311 no secret
        self._wanted: Iterator[Lookup] = islice(cycle([Lookup(*fields) for fields in found]), first, None)

    def ask(self) -> None:
        self.check(next(self._wanted))

    def check(self, lookup: Lookup) -> int:
        """Return the number of files in the answer; raise WrongAnswer if it is too small."""
        found = self.look_up(lookup)
        if found < lookup.files:
            raise WrongAnswer(f"{lookup} was answered with {found} files")
        return found

    def look_up(self, lookup: Lookup) -> int:
        raise NotImplementedError

    def close(self) -> None:
        pass


class OurService(LookupTarget):
    """A job's service, by the client of its tasks. Their cache is left out."""

    def __init__(self, target: Target, series: int) -> None:
        from tallymark.engine.rpc.client import JobClient
        from tallymark.engine.rpc.handshake import ServiceAddress

        super().__init__(target, series)
        address = ServiceAddress(target["host"], target["port"], bytes.fromhex(target["job_key"]))
        self._client = JobClient(address, target["instant"], wait_s=WAIT_S)
        self._position, self._hash = target["position"], target["log_hash"]

    def look_up(self, lookup: Lookup) -> int:
        """Do what ``JobView.files`` or ``JobView.file`` does with the answer."""
        from tallymark.engine.views.block import find_live
        from tallymark.engine.views.view import live_files

        partition = lookup.partition
        block = self._client.look_up(self._position, self._hash, [partition], wait_s=WAIT_S).result()[partition]
        if lookup.file_id is None:
            return len(live_files(block, partition, self._position))
        return int(find_live(block, partition, lookup.file_id, self._position) is not None)

    def close(self) -> None:
        self._client.close()


class HudiServer(LookupTarget):
    """Hudi's timeline server."""

    def __init__(self, target: Target, series: int) -> None:
        from tallymark.bench.peers.hudi_view import HudiView

        super().__init__(target, series)
        self._view = HudiView(target["port"], Path(target["table"]))

    def ask(self) -> None:
        """Leave the answer unparsed: what that takes in Python is not Hudi's time."""
        self._answer(next(self._wanted))

    def look_up(self, lookup: Lookup) -> int:
        from tallymark.bench.peers.hudi_view import names

        return len(names(self._answer(lookup)))

    def _answer(self, lookup: Lookup) -> bytes:
        if lookup.file_id is None:
            return self._view.files(lookup.partition)
        return self._view.file(lookup.partition, lookup.file_id)


class DiskListing(LookupTarget):
    """No view: the partition's folder is listed."""

    def __init__(self, target: Target, series: int) -> None:
        from tallymark.bench.peers.disk import Disk

        super().__init__(target, series)
        self._disk = Disk(Path(target["table"]))

    def look_up(self, lookup: Lookup) -> int:
        return self._disk.list(lookup.partition)


class S3Listing(LookupTarget):
    """No view: the prefix of the partition's path is listed."""

    def __init__(self, target: Target, series: int) -> None:
        from tallymark.backends.s3 import S3Stores
        from tallymark.bench.peers.objects import Obstore
        from tallymark.bench.views.held import options_of

        super().__init__(target, series)
        options = options_of(target)
        self._store = Obstore(S3Stores(target["bucket"], options).make(options.request_timeout_s), target["prefix"])

    def look_up(self, lookup: Lookup) -> int:
        return self._store.list(lookup.partition)
