"""What fails during jobs of Hudi's own writers, with their markers in a service: tasks, a clustering, the service."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.spark.hudi.jobs import (
    MARKS,
    Failed,
    Hudi,
    Model,
    Service,
    hudi_writers,
    of_table,
    served,
    settings_of_the_guide,
)
from tests.spark.hudi.storage import (
    Disk,
    Spy,
    check_a_failed_job_leaves_nothing,
    instant_of,
    write_while_the_service_is_killed,
)

pytestmark = MARKS

PAUSE_S = 60.0


@pytest.fixture(scope="module")
def hudi(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hudi]:
    with hudi_writers(tmp_path_factory.mktemp("hudi")) as writers:
        yield writers


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    with served(tmp_path, secret=tmp_path / "secret") as service:
        yield service


def new_table(hudi: Hudi, service: Service, path: Path, version: str, metadata: str) -> Model:
    return Model(hudi, str(path), {**settings_of_the_guide(service.port), **of_table(version, metadata)})


@pytest.mark.parametrize("metadata", ["false", "true"])
@pytest.mark.parametrize("version", ["6", "9"])
def test_the_next_write_deletes_all_files_of_a_job_that_failed_half_way(hudi, tmp_path, service, version, metadata):
    path = tmp_path / "table"
    check_a_failed_job_leaves_nothing(new_table(hudi, service, path, version, metadata), Disk(path), service)


@pytest.mark.parametrize("version", ["6", "9"])
def test_a_failed_clustering_runs_again_under_its_instant(hudi, tmp_path, service, version):
    path = tmp_path / "table"
    table = new_table(hudi, service, path, version, "false")
    for start in (0, 200):
        table.write("bulk_insert", start, start + 200)
    options = {**table.options, "hoodie.clustering.plan.strategy.max.num.groups": "100"}

    def cluster(step: str) -> None:
        hudi.do("call", f"run_clustering(path => '{path}', op => '{step}')", options)

    cluster("schedule")
    before = Disk(path).files()
    lost = max(before)
    (path / lost).rename(tmp_path / "lost")  # Hudi cannot read one of the files to cluster
    with pytest.raises(Failed, match=Path(lost).name):
        cluster("execute")
    stray = Disk(path).files() - before
    [instant] = {instant_of(file) for file in stray}
    assert Disk(path).is_pending(instant)
    assert stray <= service.markers(str(path), instant)

    (tmp_path / "lost").rename(path / lost)
    service.kill()
    service.start()
    cluster("execute")
    table.check_rows()
    clustered = {file for file in Disk(path).files() if instant_of(file) == instant}
    assert clustered <= {*table.committed()}
    assert clustered
    Disk(path).check_is_clean(table.committed())


def test_the_spy_finds_a_file_without_marker(tmp_path):
    folder, instant = tmp_path / ".hoodie/.temp/20261126", "20261126"
    folder.mkdir(parents=True)
    (folder / "MARKERS0").write_text(f"a/1_{instant}.parquet.marker.CREATE\n")
    (tmp_path / ".hoodie" / f"{instant}.inflight").touch()
    (tmp_path / "a").mkdir()
    for number in (1, 2):
        (tmp_path / f"a/{number}_{instant}.parquet").touch()
    spy = Spy(Disk(tmp_path))
    spy.look()
    assert (spy.marked, spy.unmarked) == ({f"a/1_{instant}.parquet"}, {f"a/2_{instant}.parquet"})


def test_a_file_without_its_marker_would_be_found(tmp_path):
    folder, instant = tmp_path / ".hoodie/.temp/20261126101500000", "20261126101500000"
    folder.mkdir(parents=True)
    (folder / "MARKERS0").write_text(f"a/1_{instant}.parquet.marker.CREATE\n")
    (tmp_path / ".hoodie" / f"{instant}.inflight").touch()
    (tmp_path / "a").mkdir()
    for number in (1, 2):
        (tmp_path / f"a/{number}_{instant}.parquet").touch()
    spy = Spy(Disk(tmp_path))
    spy.look()
    assert (spy.marked, spy.unmarked) == ({f"a/1_{instant}.parquet"}, {f"a/2_{instant}.parquet"})


@pytest.mark.parametrize(("version", "metadata", "pause_s"), [("6", "true", 0.0), ("9", "false", PAUSE_S)])
def test_each_file_has_its_marker_and_jobs_live_while_the_service_is_killed(
    hudi, tmp_path, service, version, metadata, pause_s
):
    path = tmp_path / "table"
    table = new_table(hudi, service, path, version, metadata)
    write_while_the_service_is_killed(table, Disk(path), service, kills=20, pause_s=pause_s)
