"""Hudi's own code, in a JVM without Spark, on markers that were taken for it."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio.from_thread import start_blocking_portal

from tallymark.backends.local import LocalBackend
from tallymark.bench.peers.timeline_server import HUDI_JARS, TimelineServer, timeline_server
from tallymark.engine.serve.hudi_markers import open_hudi_markers
from tallymark.engine.serve.hudi_service import serve_hudi
from tallymark.engine.serve.roots import Roots
from tallymark.engine.serve.settings import HudiServiceSettings
from tests.engine.serve.hudi_table import INSTANT, put_state, put_table
from tests.engine.serve.test_hudi_markers import FOLDER, SETTINGS, marker
from tests.support.jars import jars, java

pytestmark = [pytest.mark.spark, pytest.mark.no_cover]


@pytest.fixture(scope="module")
def hudi(tmp_path_factory):
    java()
    jars(HUDI_JARS)
    with timeline_server(tmp_path_factory.mktemp("hudi")) as server:
        yield server


def read_by_hudi(hudi: TimelineServer, folder: Path) -> list[str]:
    """Return the markers of a directory as Hudi's rollback reads them."""
    jvm = hudi.jvm
    settings = jvm.org.apache.hudi.storage.hadoop.HadoopStorageConfiguration(jvm.org.apache.hadoop.conf.Configuration())
    storage = jvm.org.apache.hudi.storage.HoodieStorageUtils.getStorage(str(folder), settings)
    context = jvm.org.apache.hudi.common.engine.HoodieLocalEngineContext(settings)
    reader = jvm.org.apache.hudi.common.util.MarkerUtils
    assert reader.readMarkerType(storage, str(folder)).get().toString() == "TIMELINE_SERVER_BASED"
    found = reader.readTimelineServerBasedMarkersFromFileSystem(str(folder), storage, context, 1)
    return sorted(name for path in found for name in found[path])


def test_hudis_rollback_reads_every_marker_that_was_acked(hudi, tmp_path):
    names = [marker(number) for number in range(50)] + [marker(50, "MERGE"), marker(51, "APPEND")]

    async def take() -> None:
        storage = LocalBackend(tmp_path)
        await put_table(storage, 9)
        await put_state(storage, 9, "inflight")
        async with open_hudi_markers(storage, SETTINGS) as markers, anyio.create_task_group() as tasks:
            for name in names:
                tasks.start_soon(markers.create, INSTANT, name)

    anyio.run(take, backend="trio")
    assert read_by_hudi(hudi, tmp_path / FOLDER) == sorted(names)


@contextmanager
def serving(root: Path) -> Iterator[int]:
    """A service of a table whose instant is inflight, on a loop in a thread of its own. Yields its port."""

    async def prepare() -> None:
        await put_table(LocalBackend(root), 9)
        await put_state(LocalBackend(root), 9, "inflight")

    with start_blocking_portal("trio") as portal:
        portal.call(prepare)
        run = partial(serve_hudi, Roots.of(str(root)), HudiServiceSettings(port=0), markers=SETTINGS)
        future, (_, port) = portal.start_task(run)
        yield port
        future.cancel()


def markers_of(hudi: TimelineServer, root: Path, port: int) -> Any:
    """Return Hudi's own client for the markers of the table's instant."""
    jvm = hudi.jvm
    config = jvm.org.apache.hudi.common.table.view.FileSystemViewStorageConfig
    storage_type = jvm.org.apache.hudi.common.table.view.FileSystemViewStorageType.REMOTE_FIRST
    builder = config.newBuilder().withStorageType(storage_type).withRemoteServerHost("127.0.0.1")
    settings = builder.withRemoteServerPort(port).build()
    name = "org.apache.hudi.table.marker.TimelineServerBasedWriteMarkers"
    [maker] = [
        each
        for each in jvm.java.lang.Class.forName(name).getDeclaredConstructors()
        if each.getParameterCount() == len(("base", "folder", "instant", "settings"))
    ]
    maker.setAccessible(True)
    given = hudi.gateway.new_array(jvm.java.lang.Object, 4)
    given[0], given[1], given[2], given[3] = str(root), str(root / FOLDER), INSTANT, settings
    return maker.newInstance(given)


def test_hudis_client_gets_its_markers_here(hudi, tmp_path):
    from py4j.protocol import Py4JJavaError

    jvm = hudi.jvm
    kinds = jvm.org.apache.hudi.common.model.IOType
    context = jvm.org.apache.hudi.common.engine.HoodieLocalEngineContext(
        jvm.org.apache.hudi.storage.hadoop.HadoopStorageConfiguration(jvm.org.apache.hadoop.conf.Configuration())
    )
    with serving(tmp_path) as port:
        client = markers_of(hudi, tmp_path, port)
        assert not client.doesMarkerDirExist()
        for partition in ("land=A", "land=a b", "land=ö%2F+&=x", ""):
            for number, kind in enumerate((kinds.CREATE, kinds.MERGE)):
                made = client.create(partition, f"{number}-0_0-1-2_{INSTANT}.parquet", kind)
                assert made.isPresent()
        assert client.createIfNotExists("land=A", f"0-0_0-1-2_{INSTANT}.parquet", kinds.CREATE).isPresent()
        assert client.doesMarkerDirExist()
        everything = {path.removeprefix(f"{tmp_path}/") for path in client.allMarkerFilePaths()}
        assert len(everything) == 8
        assert f"land=ö%2F+&=x/1-0_0-1-2_{INSTANT}.parquet.marker.MERGE" in everything
        data = {*client.createdAndMergedDataPaths(context, 1)}
        assert data == {path.partition(".marker.")[0] for path in everything}
        assert client.deleteMarkerDir(context, 1)
        assert not client.doesMarkerDirExist()
        anyio.run(put_state, LocalBackend(tmp_path), 9, "completed", backend="trio")
        with pytest.raises(Py4JJavaError, match="HoodieRemoteException"):
            client.create("land=A", f"9-0_0-1-2_{INSTANT}.parquet", kinds.CREATE)
    assert not (tmp_path / ".hoodie/.temp").exists()
