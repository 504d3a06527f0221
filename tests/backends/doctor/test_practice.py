"""Where the doctor works: a directory of its own, gone afterwards; and the ground that it lies on."""

from pathlib import Path

import anyio
import pytest

from tallymark.backends import InvalidPath, mounts
from tallymark.backends.doctor import Examination, LocalFileSystem, practice
from tallymark.backends.doctor.file_system import file_system_of
from tests.support.loops import on_both_loops
from tests.support.rights import locked_folder


@on_both_loops
async def test_it_works_below_the_url_out_of_readers_sight(tmp_path):
    async with practice(str(tmp_path)) as place:
        assert place.backend.url.startswith(f"{tmp_path.as_uri()}/.tallymark-doctor-")
        assert list(tmp_path.iterdir()) == []


@on_both_loops
async def test_two_doctors_do_not_meet(tmp_path):
    async with practice(str(tmp_path)) as one, practice(str(tmp_path)) as other:
        assert one.backend.url != other.backend.url


@pytest.mark.parametrize("path", ["there", "there/not/yet", "a b%20#?"])
@on_both_loops
async def test_after_an_examination_of_a_disk_every_directory_is_as_before(tmp_path, path):
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "table").write_text("of somebody")
    before = sorted(tmp_path.rglob("*"))
    async with practice(str(tmp_path / path)) as place:
        examination = Examination(place.backend, now=anyio.current_time, ground=place.ground, probing_s=200.0)
        found = await examination.run()
    assert found.is_fit
    assert found.ground is not None
    assert sorted(tmp_path.rglob("*")) == before


@on_both_loops
async def test_a_directory_without_rights_is_not_fit_and_the_rule_is_named():
    with locked_folder() as folder:
        async with practice(str(folder)) as place:
            found = await Examination(place.backend, now=anyio.current_time, ground=place.ground).run()
        assert found.verdict.startswith("not fit: gives back what it was given: ")
        assert "Check rights" in found.verdict


@on_both_loops
async def test_directories_that_somebody_uses_meanwhile_stay(tmp_path):
    async with practice(str(tmp_path / "new")):
        (tmp_path / "new").mkdir()
        (tmp_path / "new" / "mine").touch()
    assert (tmp_path / "new" / "mine").exists()


@on_both_loops
async def test_memory_has_no_ground():
    async with practice("memory:") as place:
        assert (place.backend.url, place.ground) == ("memory:", None)


@on_both_loops
async def test_a_url_of_no_store_is_refused():
    with pytest.raises(InvalidPath, match="unknown scheme"):
        async with practice("s4://bucket"):
            raise AssertionError


def test_a_directory_that_is_not_there_lies_on_the_ground_of_the_nearest_one_that_is(tmp_path):
    assert file_system_of(tmp_path / "a" / "b").directory == str(tmp_path)
    assert (file_system_of(tmp_path).free_bytes or 0) > 0


def test_without_a_list_of_mounts_the_file_system_is_unknown(tmp_path, monkeypatch):
    monkeypatch.setattr(mounts, "MOUNTS", Path("/nowhere"))
    found = file_system_of(tmp_path)
    assert (found.mount_point, found.file_system, found.remarks) == ("/", "unknown", [])


@pytest.mark.parametrize(
    ("kind", "told"), [("overlay", "container"), ("nfs", "one machine"), ("tmpfs", "restart"), ("ext4", None)]
)
def test_what_a_file_system_does_not_promise_is_remarked_on(kind, told):
    remarks = LocalFileSystem("/data", kind, "/", is_read_only=False, free_bytes=10**12).remarks
    assert remarks == [] if told is None else told in remarks[0]
