"""Promises about names that one of many may take: put_new."""

import anyio
import pytest

from tallymark.backends import AlreadyExists, Backend
from tallymark.backends.testing.store import Peek, StoreTests, large_promise, promise


class PutNewPromises(StoreTests):
    @promise
    async def test_a_taken_name_is_refused_and_keeps_its_bytes(self, backend: Backend, peek: Peek) -> None:
        await backend.put_new("a/b", b"first")
        with pytest.raises(AlreadyExists, match="a/b") as caught:
            await backend.put_new("a/b", b"second")
        assert isinstance(caught.value, FileExistsError)
        assert peek.objects() == {"a/b": b"first"}

    @promise
    async def test_a_name_that_is_taken_with_the_same_bytes_is_refused_too(self, backend: Backend, peek: Peek) -> None:
        await backend.put_new("a", b"equal")
        with pytest.raises(AlreadyExists):
            await backend.put_new("a", b"equal")
        assert peek.objects() == {"a": b"equal"}

    @promise
    async def test_a_name_that_a_put_has_taken_is_refused(self, backend: Backend, peek: Peek) -> None:
        await backend.put("a", b"first")
        with pytest.raises(AlreadyExists):
            await backend.put_new("a", b"second")
        assert peek.objects() == {"a": b"first"}

    @promise
    async def test_a_name_is_free_again_after_its_delete(self, backend: Backend, peek: Peek) -> None:
        await backend.put_new("a", b"first")
        await backend.delete(["a"])
        await backend.put_new("a", b"second")
        with pytest.raises(AlreadyExists):
            await backend.put_new("a", b"third")
        assert peek.objects() == {"a": b"second"}

    @large_promise
    async def test_of_many_writers_of_one_new_name_exactly_one_wins_round_after_round(
        self, backend: Backend, peek: Peek
    ) -> None:
        won: dict[str, list[bytes]] = {}

        async def race(path: str, data: bytes) -> None:
            try:
                await backend.put_new(path, data)
            except AlreadyExists:
                return
            won.setdefault(path, []).append(data)

        rounds = [f"log/{number}" for number in range(self.race_round_count)]
        for path in rounds:
            async with anyio.create_task_group() as group:
                for writer in range(self.caller_count):
                    group.start_soon(race, path, b"%d" % writer)
        assert {path: len(winners) for path, winners in won.items()} == dict.fromkeys(rounds, 1)
        assert peek.objects() == {path: winner for path, [winner] in won.items()}

    @promise
    async def test_of_many_writers_with_equal_bytes_exactly_one_wins_too(self, backend: Backend, peek: Peek) -> None:
        won: list[str] = []

        async def race(path: str) -> None:
            try:
                await backend.put_new(path, b"equal")
            except AlreadyExists:
                return
            won.append(path)

        rounds = [f"log/{number}" for number in range(self.race_round_count // 10 or 1)]
        for path in rounds:
            async with anyio.create_task_group() as group:
                for _ in range(self.caller_count):
                    group.start_soon(race, path)
        assert won == rounds
        assert peek.objects() == dict.fromkeys(rounds, b"equal")
