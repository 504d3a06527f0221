"""Promises about deletes."""

import anyio

from tallymark.backends import Backend, checks
from tallymark.backends.testing.store import Peek, StoreTests, listed, promise


class DeletePromises(StoreTests):
    @promise
    async def test_deleted_objects_are_gone_and_others_stay(self, backend: Backend, peek: Peek) -> None:
        for path in ("a", "b/c", "b/d", "e"):
            await backend.put(path, b"")
        await backend.delete(["a", "b/c"])
        assert peek.objects() == {"b/d": b"", "e": b""}

    @promise
    async def test_deleting_what_is_absent_is_fine(self, backend: Backend, peek: Peek) -> None:
        await backend.put("a/b", b"1")
        await backend.delete([])
        await backend.delete(["x", "a/x", "a", "a/b/c", "x/y/z"])
        await backend.delete(["x"])
        assert peek.objects() == {"a/b": b"1"}

    @promise
    async def test_one_delete_takes_more_objects_than_one_request_absent_ones_among_them(
        self, backend: Backend, peek: Peek
    ) -> None:
        there = [f"m/{number:05}" for number in range(self.deleted_object_count)]
        await self.fill(backend, [*there, "m/stays", "stays"])
        absent = [f"{path}x" for path in there]
        await checks.deletes(backend, there, absent=absent)
        assert peek.objects() == {"m/stays": b"m/stays", "stays": b"stays"}
        assert await listed(backend) == ["m/stays", "stays"]

    @promise
    async def test_a_path_that_is_named_twice_in_one_delete_is_deleted(self, backend: Backend, peek: Peek) -> None:
        await backend.put("a", b"")
        await backend.delete(["a", "a"])
        assert peek.objects() == {}

    @promise
    async def test_a_delete_leaves_no_empty_directory(self, backend: Backend, peek: Peek) -> None:
        for path in ("a/b/c/d", "a/b/x", "e/f"):
            await backend.put(path, b"")
        await backend.delete(["a/b/c/d", "e/f"])
        assert list(peek.directories()) == []
        assert peek.objects() == {"a/b/x": b""}

    @promise
    async def test_puts_into_a_directory_that_deletes_empty_again_and_again_all_succeed(
        self, backend: Backend, peek: Peek
    ) -> None:
        async def churn(name: str) -> None:
            for number in range(25):
                await backend.put_new(f"d/e/{name}{number}", b"")
                await backend.delete([f"d/e/{name}{number}"])
            await backend.put(f"d/e/{name}", name.encode())

        async with anyio.create_task_group() as group:
            for name in "abcd":
                group.start_soon(churn, name)
        assert peek.objects() == {f"d/e/{name}": name.encode() for name in "abcd"}
