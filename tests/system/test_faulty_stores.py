"""Commits through a network where a third of all requests meets a fault: every promise holds, on S3 and on GCS.

Fewer here than a release is accepted by: ``TALLYMARK_TESTS_FULL=1`` plays 50 commits of 200 files on each.
"""

import os

import pytest

from tests.support.services.fault_plan import Kind
from tests.system.many_commits import RATE, Size, judge, play, scene_of, summary

SIZE = Size(commits=50, files=200) if os.environ.get("TALLYMARK_TESTS_FULL") else Size(commits=4, files=40)


@pytest.mark.parametrize("store", ["s3", "gcs"])
def test_commits_amid_faults_of_every_kind_keep_every_promise(request: pytest.FixtureRequest, store: str) -> None:
    with scene_of(request.getfixturevalue(store)) as scene:
        play(scene, SIZE)
        print(summary(scene, SIZE))
        assert {kind for kind in Kind if not happened(scene.proxy.faults, kind)} == set()
        assert scene.proxy.faults.total() > scene.proxy.requests.total() * RATE * len(Kind) / 2
        judge(scene, SIZE)


def happened(faults: dict[str, int], kind: Kind) -> int:
    return sum(count for name, count in faults.items() if name.startswith(kind.name.lower().replace("_", " ")))
