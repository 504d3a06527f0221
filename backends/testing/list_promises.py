"""Promises about listings."""

import math
from dataclasses import dataclass, field

import anyio
import pytest

from tallymark.backends import Backend
from tallymark.backends.contract import FolderListing
from tallymark.backends.testing.store import StoreTests, large_promise, listed, promise


class ListPromises(StoreTests):
    @promise
    async def test_a_listing_shows_every_object_below_at_any_depth_sorted_by_path(self, backend: Backend) -> None:
        paths = ["b", "a/z", "a/b/c/d", "a.b", "a-b", "a/b.c", "é", "z", "\N{GRINNING FACE}", "\uffee"]
        for path in paths:
            await backend.put(path, path.encode())
        found = [entry async for entry in backend.list("")]
        assert [entry.path for entry in found] == sorted(paths)
        assert [entry.size for entry in found] == [len(entry.path.encode()) for entry in found]

    @promise
    async def test_a_directory_ends_at_a_slash(self, backend: Backend) -> None:
        for path in ("dataset1/x", "dataset10/x", "dataset1.x/y", "other/dataset1/x"):
            await backend.put(path, b"")
        assert await listed(backend, "dataset1") == ["dataset1/x"]
        assert await listed(backend, "dataset10") == ["dataset10/x"]
        assert await listed(backend, "dataset") == []

    @promise
    async def test_a_listing_gives_paths_from_the_root_that_get_takes(self, backend: Backend) -> None:
        await backend.put("a/b/c", b"1")
        assert [await backend.get(path) for path in await listed(backend, "a/b")] == [b"1"]

    @promise
    async def test_a_directory_that_does_not_exist_is_empty(self, backend: Backend) -> None:
        await backend.put("a", b"")
        assert await listed(backend, "x/y") == []
        assert await listed(backend, "a") == []

    @promise
    async def test_a_listing_shows_no_deleted_object_and_each_put_that_returned(self, backend: Backend) -> None:
        for number in range(20):
            await backend.put(f"m/{number:02}", b"")
        await backend.delete([f"m/{number:02}" for number in range(0, 20, 2)])
        assert await listed(backend, "m") == [f"m/{number:02}" for number in range(1, 20, 2)]

    @large_promise
    async def test_a_listing_during_deletes_misses_no_kept_object_and_invents_none(self, backend: Backend) -> None:
        paths = [f"k/{number % 7}/{number:06}" for number in range(self.listed_object_count)]
        await self.fill(backend, paths)
        objects = _Objects(backend, paths)
        await objects.delete(paths[::10])
        deleted = [paths[number::10] for number in (1, 2, 3, 4)]
        await objects.list_and_delete_at_every_quarter(deleted)
        beside = [paths[number::20] for number in (5, 6, 7, 8, 15, 16, 17, 18)]
        await objects.list_while_deleting(beside)
        assert await listed(backend, "k") == sorted(paths[9::10])

    @promise
    async def test_the_stores_clock_does_not_run_backwards_over_puts(self, backend: Backend) -> None:
        for path in ("c", "a", "b"):
            await backend.put(path, b"")
        modified = {entry.path: entry.modified async for entry in backend.list("")}
        assert modified["c"] <= modified["a"] <= modified["b"]
        assert all(math.isfinite(when) for when in modified.values())

    @promise
    async def test_folders_are_those_directly_below_sorted_and_once_each(self, backend: Backend) -> None:
        for path in ("t/file", "t/b/1", "t/b/2", "t/a/deep/er/1", "t/a.b/1", "t2/no/1", "no/t/1"):
            await backend.put(path, b"")
        assert await _folders(backend, "t") == ["a", "a.b", "b"]
        assert await _folders(backend, "t/a") == ["deep"]
        assert [name for name in await _folders(backend, "") if not name.startswith(".")] == ["no", "t", "t2"]

    @promise
    async def test_folders_have_the_names_that_they_were_given(self, backend: Backend) -> None:
        names = ["a b", "100%", "a%20b", "a=1", "é", "e\u0301", "\N{GRINNING FACE}", "\uffee", "a+b", ".hidden"]
        for name in names:
            await backend.put(f"t/{name}/1", b"")
            await backend.put(f"t/{name}/{name}/1", b"")
        assert await _folders(backend, "t") == sorted(names)
        assert [await _folders(backend, f"t/{name}") for name in names] == [[name] for name in names]

    @promise
    async def test_a_directory_that_does_not_exist_has_no_folders(self, backend: Backend) -> None:
        await backend.put("a/b", b"")
        for missing in ("x/y", "a/b", "a/x"):
            assert await _folders(backend, missing) == []

    @large_promise
    async def test_folders_are_more_than_one_request_lists(self, backend: Backend) -> None:
        names = [f"{number:05}" for number in range(self.deleted_object_count)]
        await self.fill(backend, [f"t/{name}/1" for name in names])
        assert await _folders(backend, "t") == names


async def _folders(backend: Backend, directory: str) -> list[str]:
    if not isinstance(backend, FolderListing):
        pytest.skip("it does not list folders, which is optional")
    return list(await backend.folders(directory))


@dataclass(slots=True)
class _Objects:
    """Objects below ``k``, and which of them a listing has to show and which it must not."""

    backend: Backend
    paths: list[str]
    deleted: set[str] = field(default_factory=set)
    """Those whose delete has returned."""
    requested: set[str] = field(default_factory=set)
    """Those whose delete has started."""

    async def delete(self, some: list[str]) -> None:
        self.requested.update(some)
        await self.backend.delete(some)
        self.deleted.update(some)

    async def list_and_delete_at_every_quarter(self, parts: list[list[str]]) -> None:
        """One listing; each part, which is spread over all of it, is deleted after a further quarter of the entries."""
        gone = set(self.deleted)
        seen: list[str] = []
        step = (len(self.paths) - len(gone)) // 5 or 1
        left = list(parts)
        async for entry in self.backend.list("k"):
            seen.append(entry.path)
            if left and len(seen) >= step * (len(parts) - len(left) + 1):
                await self.delete(left.pop(0))
        for part in left:
            await self.delete(part)
        self._check(seen, gone)

    async def list_while_deleting(self, parts: list[list[str]]) -> None:
        """List repeatedly while the parts are deleted one after the other."""
        ended = anyio.Event()

        async def delete_all() -> None:
            for part in parts:
                await self.delete(part)
            ended.set()

        async with anyio.create_task_group() as group:
            group.start_soon(delete_all)
            while not ended.is_set():
                gone = set(self.deleted)
                self._check(await listed(self.backend, "k"), gone)

    def _check(self, seen: list[str], deleted: set[str]) -> None:
        """Check a listing; ``deleted`` had been deleted when it started."""
        found = set(seen)
        assert seen == sorted(found), "a listing is sorted by path, and shows each path once"
        assert found <= set(self.paths), "a listing shows nothing that was never put"
        assert not found & deleted, "a listing shows nothing whose delete had returned before it started"
        assert set(self.paths) - self.requested <= found, "a listing shows each object that is not deleted"
