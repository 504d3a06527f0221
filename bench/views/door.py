"""A caller's way to ask, one object a connection: blocking, and used by one thread."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol

from tallymark.bench.views.question import Question


class Door(Protocol):
    def ask(self, question: Question) -> object:
        """Until the whole answer is there."""
        ...

    def count(self, answer: object) -> int:
        """The files that it names. Not counted as time."""
        ...

    def close(self) -> None: ...


Address = Mapping[str, Any]
"""``door``, the name of one of these, and what it needs to be opened; JSON, since callers are other processes."""


def open_door(address: Address) -> Door:
    return _DOORS[address["door"]](address)


WAIT_S = 30.0
"""For an answer of ours: none is to be lost to a bound of the client, however late it is."""


class HudiDoor:
    """A connection to Hudi's timeline server."""

    def __init__(self, address: Address) -> None:
        from tallymark.bench.peers.hudi_view import HudiView

        self._view = HudiView(address["port"], Path(address["table"]))

    def ask(self, question: Question) -> object:
        if question.file_id is None:
            return self._view.files(question.partition)
        return self._view.file(question.partition, question.file_id)

    def count(self, answer: object) -> int:
        from tallymark.bench.peers.hudi_view import names

        assert isinstance(answer, bytes)
        return len(names(answer))

    def close(self) -> None:
        self._view.close()


class DiskDoor:
    """No view at all: the partition's folder is listed."""

    def __init__(self, address: Address) -> None:
        from tallymark.bench.peers.disk import Disk

        self._disk = Disk(Path(address["table"]))

    def ask(self, question: Question) -> object:
        return self._disk.list(question.partition)

    def count(self, answer: object) -> int:
        return _number(answer)

    def close(self) -> None:
        pass


class S3Door:
    """No view at all: what begins with the partition's path is listed."""

    def __init__(self, address: Address) -> None:
        from tallymark.backends.s3 import S3Stores
        from tallymark.bench.peers.objects import Obstore
        from tallymark.bench.views.held import options_of

        options = options_of(address)
        stores = S3Stores(address["bucket"], options)
        self._store = Obstore(stores.make(options.request_timeout_s), address["prefix"])

    def ask(self, question: Question) -> object:
        return self._store.list(question.partition)

    def count(self, answer: object) -> int:
        return _number(answer)

    def close(self) -> None:
        pass


class OurDoor:
    """A connection to a job's service, by the client of its tasks; the cache of theirs is left out."""

    def __init__(self, address: Address) -> None:
        from tallymark.engine.rpc.client import JobClient
        from tallymark.engine.rpc.handshake import ServiceAddress
        from tallymark.engine.views.block import find_live
        from tallymark.engine.views.view import live_files

        self._find_live, self._live_files = find_live, live_files
        service = ServiceAddress(address["host"], address["port"], bytes.fromhex(address["job_key"]))
        self._client = JobClient(service, address["instant"], wait_s=WAIT_S)
        self._position, self._hash = address["position"], address["log_hash"]

    def ask(self, question: Question) -> object:
        """What ``JobView.files`` or ``JobView.file`` does with the answer."""
        partition = question.partition
        found = self._client.look_up(self._position, self._hash, [partition], wait_s=WAIT_S)
        block = found.result()[partition]
        if question.file_id is None:
            return len(self._live_files(block, partition, self._position))
        return int(self._find_live(block, partition, question.file_id, self._position) is not None)

    def count(self, answer: object) -> int:
        return _number(answer)

    def close(self) -> None:
        self._client.close()


def _number(answer: object) -> int:
    assert isinstance(answer, int)
    return answer


_DOORS: dict[str, Callable[[Address], Door]] = {
    "ours": OurDoor,
    "hudi": HudiDoor,
    "disk": DiskDoor,
    "s3": S3Door,
}
