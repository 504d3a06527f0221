"""Hudi's own code, in a JVM without Spark, on markers that were taken for it."""

from pathlib import Path

import anyio
import pytest

from tallymark.backends.local import LocalBackend
from tallymark.bench.peers.timeline_server import HUDI_JARS, TimelineServer, timeline_server
from tallymark.engine.serve.hudi_markers import open_hudi_markers
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
