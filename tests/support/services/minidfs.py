"""A real HDFS: a NameNode and two DataNodes of Hadoop 3.4, in a Java process of their own.

Hadoop's own test cluster (MiniDFSCluster) runs there behind py4j, which PySpark brings; nothing has to be compiled.
What a test does to the cluster it undoes by leaving the block. ``objects`` and ``directories`` look at it through
Hadoop's own client, around the library under test.
"""

import os
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from py4j.java_gateway import GatewayParameters, JavaGateway, JavaObject
from py4j.protocol import Py4JJavaError

from tests.support.jars import jars, java, pyspark_jar
from tests.support.services.minidfs_jars import MINIDFS_JARS

DATANODES = 2

UNREADABLE = b"open, and without a length"

_JAVA_OPTIONS = (
    *("-Xmx512m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"),  # a quick start counts more than quick code
    *("-Dfile.encoding=UTF-8", "-Dsun.jnu.encoding=UTF-8"),  # objects() writes files of any name
    *("--add-opens", "java.base/java.lang=ALL-UNNAMED"),
)

_CONF = {
    "dfs.replication": "2",
    # A write goes on with the DataNode that is left, and the next one does not wait long for those that are gone.
    "dfs.client.block.write.replace-datanode-on-failure.policy": "NEVER",
    "dfs.namenode.replication.min": "1",
    "dfs.heartbeat.interval": "1",
    "dfs.namenode.heartbeat.recheck-interval": "1000",
    "dfs.namenode.avoid.write.stale.datanode": "true",  # as docs/storage.md advises
    "dfs.namenode.stale.datanode.interval": "3000",
    "dfs.namenode.safemode.extension": "0",
    "dfs.namenode.safemode.min.datanodes": "1",
    "dfs.permissions.superusergroup": "administrators",
    # Quotas are counted in whole blocks; small ones let a test fill one.
    "dfs.namenode.fs-limits.min-block-size": "1048576",
    "dfs.blocksize": "134217728",
}


class MiniDfs:
    """A running cluster. Its methods block until done."""

    def __init__(self, folder: Path) -> None:
        """Below ``folder`` lie the blocks and the NameNode's edits."""
        self._folder = folder
        self._port = 0
        self._start(format=True)

    @property
    def url(self) -> str:
        return f"hdfs://127.0.0.1:{self._port}"

    @contextmanager
    def namenode_down(self) -> Iterator[None]:
        """No NameNode for the time of the block: connections are refused."""
        self.kill_namenode()
        try:
            yield
        finally:
            self.restart_namenode()

    def kill_namenode(self) -> None:
        self._cluster.shutdownNameNode(0)

    def restart_namenode(self) -> None:
        """Returns when it serves writes again, at the same port."""
        self._cluster.restartNameNode(0)

    @contextmanager
    def datanode_down(self, number: int = 0) -> Iterator[None]:
        """One DataNode less for the time of the block."""
        stopped = self._cluster.stopDataNode(number)
        try:
            yield
        finally:
            self._cluster.restartDataNode(stopped, True)
            self._cluster.waitActive()

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Nobody answers, and no connection breaks, for the time of the block."""
        self._java.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self._java.send_signal(signal.SIGCONT)

    @contextmanager
    def safe_mode(self) -> Iterator[None]:
        """The NameNode takes no writes for the time of the block."""
        namenode = self._cluster.getNameNode(0)
        enum = self._jvm.org.apache.hadoop.hdfs.protocol.HdfsConstants.SafeModeAction
        namenode.getRpcServer().setSafeMode(enum.SAFEMODE_ENTER, False)
        try:
            yield
        finally:
            namenode.getRpcServer().setSafeMode(enum.SAFEMODE_LEAVE, False)

    @contextmanager
    def space_quota(self, path: str, size: int) -> Iterator[None]:
        """At most so many bytes, replicas included, below the directory for the time of the block."""
        keep = self._jvm.org.apache.hadoop.hdfs.protocol.HdfsConstants
        self._fs.setQuota(self._path(path), keep.QUOTA_DONT_SET, size)
        try:
            yield
        finally:
            self._fs.setQuota(self._path(path), keep.QUOTA_DONT_SET, keep.QUOTA_RESET)

    def crash(self) -> None:
        """SIGKILL for all of the cluster at once. No process and no connection is left."""
        self._java.kill()
        self._java.wait()
        self._gateway.close()
        for pipe in (self._java.stdin, self._java.stdout):
            assert pipe is not None
            pipe.close()

    def restart(self) -> None:
        """After ``crash``: what survived, at the same port. Returns when it serves writes again."""
        self._start(format=False)

    def objects(self, root: str) -> dict[str, bytes]:
        """Every file below a directory, however hidden or unfinished, path to bytes.

        The bytes of a file whose writer is dead, and whose DataNodes were since, cannot be read: UNREADABLE.
        """
        if not self._fs.exists(self._path(root)):
            return {}
        with tempfile.TemporaryDirectory() as name:
            copy = Path(name, "copy")
            try:
                self._fs.copyToLocalFile(False, self._path(root), self._path(str(copy)), True)
            except Py4JJavaError:
                return {path: self._bytes(f"{root}/{path}", Path(name, "file")) for path in self._files(root)}
            found = [Path(folder) / name for folder, _, names in os.walk(copy) for name in names]
            return {file.relative_to(copy).as_posix(): file.read_bytes() for file in found}

    def directories(self, root: str) -> list[str]:
        """The directories below one that hold nothing."""
        if not self._fs.exists(self._path(root)):
            return []
        return sorted(self._empty(root, ""))

    def put(self, path: str, data: bytes) -> None:
        """A whole object, around the library."""
        file = self._fs.create(self._path(path), True)
        file.write(data)
        file.close()

    def leave_open(self, path: str) -> None:
        """A file as a writer leaves it that was killed while it wrote."""
        file = self._fs.create(self._path(path), True)
        file.write(b"half")
        file.hflush()

    def set_age(self, path: str, seconds: float) -> None:
        modified = self._fs.getFileStatus(self._path(path)).getModificationTime()
        self._fs.setTimes(self._path(path), modified - round(seconds * 1000), -1)

    def make_directory(self, path: str, *, permission: int = 0o755, owner: str | None = None) -> None:
        self._fs.mkdirs(self._path(path))
        self.set_rights(path, permission=permission, owner=owner)

    def set_rights(self, path: str, *, permission: int, owner: str | None = None) -> None:
        self._fs.setPermission(
            self._path(path), self._jvm.org.apache.hadoop.fs.permission.FsPermission(f"{permission:o}")
        )
        if owner:
            self._fs.setOwner(self._path(path), owner, None)

    def _start(self, *, format: bool) -> None:  # noqa: A002 -- Hadoop's word
        self._java = self._start_java()
        assert self._java.stdout is not None
        port, secret = int(self._java.stdout.readline()), self._java.stdout.readline().strip()
        # Without memory management Python's collector does not call a Java that was killed.
        parameters = GatewayParameters(port=port, auth_token=secret, auto_convert=True, enable_memory_management=False)
        self._gateway = JavaGateway(gateway_parameters=parameters)
        self._jvm: Any = self._gateway.jvm
        conf = self._jvm.org.apache.hadoop.hdfs.HdfsConfiguration()
        for key, value in {**_CONF, "hdfs.minidfs.basedir": str(self._folder)}.items():
            conf.set(key, value)
        builder = self._jvm.org.apache.hadoop.hdfs.MiniDFSCluster.Builder(conf).numDataNodes(DATANODES)
        builder = builder.format(format).nameNodePort(self._port)
        self._cluster = builder.build()
        self._cluster.waitActive()
        self._port = self._cluster.getNameNodePort()

    def _start_java(self) -> "subprocess.Popen[str]":
        classpath = [pyspark_jar("py4j-*.jar"), *jars(MINIDFS_JARS)]
        command = [java(), *_JAVA_OPTIONS, "-cp", os.pathsep.join(map(str, classpath))]
        with (self._folder / "log").open("a") as log:
            return subprocess.Popen(
                # Without us its standard input ends, and with that the process.
                [*command, "py4j.GatewayServer", "--die-on-broken-pipe", "--enable-auth", "0"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                env={**os.environ, "LC_ALL": "C.UTF-8"},
                start_new_session=True,
            )

    @property
    def _fs(self) -> JavaObject:
        return self._cluster.getFileSystem()

    def _path(self, path: str) -> JavaObject:
        return self._jvm.org.apache.hadoop.fs.Path(None, None, path)

    def _files(self, root: str) -> list[str]:
        found, files = self._fs.listFiles(self._path(root), True), []
        while found.hasNext():
            files.append(str(found.next().getPath().toUri().getPath()).removeprefix(f"{root}/"))
        return files

    def _bytes(self, path: str, copy: Path) -> bytes:
        try:
            self._fs.copyToLocalFile(False, self._path(path), self._path(str(copy)), True)
        except Py4JJavaError:
            return UNREADABLE
        return copy.read_bytes()

    def _empty(self, folder: str, shown: str) -> Iterator[str]:
        found = self._fs.listStatus(self._path(folder))
        if not len(found) and shown:
            yield shown
        for status in found:
            if status.isDirectory():
                name = status.getPath().getName()
                yield from self._empty(f"{folder}/{name}", f"{shown}/{name}".lstrip("/"))


@contextmanager
def mini_dfs(folder: Path) -> Iterator[MiniDfs]:
    """A cluster for the time of the block. Skips the test without Java or network; fails it in CI."""
    folder.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        cluster = MiniDfs(folder)
        stack.callback(cluster.crash)
        yield cluster
