"""Where is written: a new folder on a store, with what Spark needs to reach it. It goes at the end."""

import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from tallymark.backends import InvalidPath
from tallymark.backends.mounts import mount_of
from tallymark.bench.folder import new_folder
from tallymark.bench.jars import BARE, BARE_CONF
from tallymark.bench.writes.order import Figures

Kind = Literal["local", "s3", "hdfs"]


@dataclass(frozen=True, slots=True, kw_only=True)
class WritePlace:
    kind: Kind
    title: str
    where: str
    url: str
    """Of the folder, as Spark takes it."""
    jars: Sequence[str] = ()
    """Of every side."""
    connectors: Mapping[str, Sequence[str]] | None = None
    """By the release of Hadoop that a side's PySpark bundles, what reaches the store; None where Hadoop itself does."""
    conf: Mapping[str, str] = field(default_factory=dict)
    """Settings of every side's session."""
    environment: Mapping[str, str] = field(default_factory=dict)
    can_read: bool = True
    """Whether rows can be read back there: a server that forgets large bodies cannot give them."""
    seen: Callable[[], Figures] | None = None
    """What the store itself has to say of what was asked of it since the last call, where it is the harness's."""

    def remove(self, target: str) -> None:
        """Delete a table that is not needed any more."""
        if self.kind == "local":
            shutil.rmtree(target, ignore_errors=True)


@contextmanager
def local(parent: Path) -> Iterator[WritePlace]:
    """A new directory below one that exists."""
    if not parent.is_dir():
        raise InvalidPath(f"{parent} is not a directory of this machine; make it first")
    mount = mount_of(parent)
    with new_folder(parent.resolve()) as folder:
        yield WritePlace(
            kind="local",
            title="local disk",
            where=f"{mount.kind if mount is not None else 'unknown file system'}, {parent}; Hadoop without chmod forks",
            url=str(folder),
            jars=BARE,
            conf=BARE_CONF,
        )
