"""A directory that others write to: what is theirs stays, what is no object is refused, and the error says whose."""

import os
from pathlib import Path

import pytest

from tallymark.backends import AlreadyExists, NotFound, NotPermitted
from tallymark.backends.local import SCRATCH, LocalBackend
from tallymark.backends.testing import STAGING, listed
from tests.backends.local_peek import LocalPeek
from tests.support.loops import on_both_loops
from tests.support.rights import NEEDS_ROOT, NOBODY, as_nobody, open_folder


@pytest.fixture
def peek(tmp_path: Path) -> LocalPeek:
    (tmp_path / "table").mkdir()
    return LocalPeek(tmp_path / "table")


# things that are no objects


@pytest.mark.parametrize("kind", ["directory", "dangling link", "pipe"])
@on_both_loops
async def test_what_is_no_file_at_an_object_s_path_is_named_and_stays(peek, kind):
    place = peek.root / "log/1"
    place.parent.mkdir()
    {
        "directory": place.mkdir,
        "dangling link": lambda: place.symlink_to("nowhere"),
        "pipe": lambda: os.mkfifo(place),
    }[kind]()
    with pytest.raises(NotPermitted, match=r"log/1: .* is where an object should be.*move it away"):
        await peek.backend.put_new("log/1", b"")
    assert os.path.lexists(place)
    assert not place.is_file()


@on_both_loops
async def test_a_link_to_a_file_is_that_file_and_only_the_link_is_replaced_or_deleted(peek, tmp_path):
    (tmp_path / "elsewhere").write_bytes(b"another's")
    for name in ("a", "b"):
        (peek.root / name).symlink_to(tmp_path / "elsewhere")
    assert await peek.backend.get("a") == b"another's"
    with pytest.raises(AlreadyExists):
        await peek.backend.put_new("a", b"mine")
    await peek.backend.put("a", b"mine")
    await peek.backend.delete(["b"])
    assert (tmp_path / "elsewhere").read_bytes() == b"another's"
    assert peek.objects() == {"a": b"mine"}


@on_both_loops
async def test_nothing_is_put_behind_a_linked_directory_where_no_listing_would_find_it(peek, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (peek.root / "p=1").symlink_to(tmp_path / "elsewhere")
    await peek.backend.open_staging(STAGING)
    file = peek.backend.new_file("p=1/a", staging=STAGING)
    for ask in (
        lambda: peek.backend.put("p=1/a", b""),
        lambda: peek.backend.put_new("p=1/q=2/a", b""),
        lambda: peek.backend.open_staging("p=1/staged"),
        lambda: peek.backend.get("p=1/a"),
    ):
        with pytest.raises(NotPermitted, match="p=1 is a symbolic link"):
            await ask()
    with pytest.raises(NotPermitted, match="p=1 is a symbolic link"):
        file.publish()
    assert list((tmp_path / "elsewhere").iterdir()) == []


@on_both_loops
async def test_the_root_itself_may_be_a_link(peek, tmp_path):
    (tmp_path / "link").symlink_to(peek.root)
    backend = LocalBackend(tmp_path / "link")
    await backend.put_new("p/a", b"1")
    assert await listed(backend) == ["p/a"]
    assert peek.objects() == {"p/a": b"1"}


@on_both_loops
async def test_a_root_that_is_a_link_to_nowhere_is_not_permitted(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    with pytest.raises(NotPermitted):
        await LocalBackend(tmp_path / "link").put_new("a", b"")
    assert not (tmp_path / "nowhere").exists()


# staging


@on_both_loops
async def test_foreign_things_in_a_staging_directory_go_with_its_close(peek):
    await peek.backend.open_staging(STAGING)
    file = peek.backend.new_file("a", staging=STAGING)
    (peek.root / STAGING / "folder").mkdir()
    (peek.root / STAGING / "folder/foreign").write_bytes(b"foreign")
    (peek.root / STAGING / "link").symlink_to(peek.root)
    await peek.backend.close_staging(STAGING)
    with pytest.raises(NotFound):
        file.publish()
    assert peek.objects() == {}
    assert peek.directories() == []


@NEEDS_ROOT
@on_both_loops
async def test_staging_closes_although_a_foreign_file_in_it_cannot_be_removed_and_that_is_told(caplog):
    with open_folder() as root, as_nobody():
        backend = LocalBackend(root)
        await backend.open_staging(STAGING)
        file = backend.new_file("a", staging=STAGING)
        os.seteuid(0)
        (root / STAGING / "theirs").mkdir()
        (root / STAGING / "theirs/file").write_bytes(b"theirs")
        os.seteuid(NOBODY)
        await backend.close_staging(STAGING)
        with pytest.raises(NotFound):
            file.publish()
        left = await listed(backend)
        assert [path.rpartition("/")[2] for path in left] == ["file"]
        assert "staging.left path=" in caplog.text
        with pytest.raises(NotPermitted, match=r"theirs is drwxr-xr-x of user 0"):
            await backend.delete(left)


@on_both_loops
async def test_a_foreign_directory_among_scratch_files_disturbs_nobody(peek):
    (peek.root / SCRATCH / "folder").mkdir(parents=True)
    os.utime(peek.root / SCRATCH / "folder", (0, 0))
    await peek.backend.put_new("a", b"")
    assert await listed(peek.backend) == ["a"]


# rights


@on_both_loops
async def test_a_directory_that_may_be_read_and_not_entered_is_named():
    with open_folder() as root:
        LocalPeek(root)
        (root / "p").mkdir()
        (root / "p/a").write_bytes(b"1")
        (root / "p").chmod(0o444)
        with as_nobody():
            backend = LocalBackend(root)
            for ask in (
                lambda: backend.get("p/a"),
                lambda: listed(backend),
                lambda: backend.put("p/a", b""),
                lambda: backend.put_new("p/b", b""),
                lambda: backend.delete(["p/a"]),
            ):
                with pytest.raises(NotPermitted, match=rf"user {os.geteuid()}, and .*/p is dr--r--r--"):
                    await ask()
        (root / "p").chmod(0o755)
        assert (root / "p/a").read_bytes() == b"1"


@on_both_loops
async def test_a_directory_that_may_be_written_and_not_read_is_refused_before_anything_has_a_name():
    with open_folder() as root:
        (root / "p").mkdir()
        (root / "p").chmod(0o333)
        with as_nobody():
            for ask in (LocalBackend(root).put, LocalBackend(root).put_new):
                with pytest.raises(NotPermitted, match="Check rights"):
                    await ask("p/a", b"")
        (root / "p").chmod(0o755)
        assert list((root / "p").iterdir()) == []


@NEEDS_ROOT
@on_both_loops
async def test_in_a_sticky_directory_another_user_s_object_stays_and_its_owner_is_named():
    with open_folder() as root:
        (root / "p").mkdir()
        (root / "p/a").write_bytes(b"root's")
        (root / "p").chmod(0o1777)
        with as_nobody():
            backend = LocalBackend(root)
            await backend.put_new("p/b", b"mine")
            await backend.delete(["p/b"])
            for ask in (lambda: backend.put("p/a", b""), lambda: backend.delete(["p/a"])):
                with pytest.raises(
                    NotPermitted, match=r"p/a is .* of user 0, .*/p is .* only owners replace and delete"
                ):
                    await ask()
            with pytest.raises(AlreadyExists):
                await backend.put_new("p/a", b"")
        assert (root / "p/a").read_bytes() == b"root's"


@NEEDS_ROOT
@on_both_loops
async def test_a_table_that_another_user_has_begun_is_refused_with_the_directory_in_the_way():
    with open_folder() as root:
        await LocalBackend(root).put_new("p/a", b"root's")
        with as_nobody(), pytest.raises(NotPermitted, match=rf"{SCRATCH} is drwxr-xr-x of user 0"):
            await LocalBackend(root).put_new("b", b"")
        assert await listed(LocalBackend(root)) == ["p/a"]


@NEEDS_ROOT
@on_both_loops
async def test_an_object_that_another_user_keeps_for_himself_is_not_permitted():
    with open_folder() as root:
        (root / "a").write_bytes(b"root's")
        (root / "a").chmod(0o600)
        with as_nobody(), pytest.raises(NotPermitted, match=r"a is -rw------- of user 0"):
            await LocalBackend(root).get("a")
