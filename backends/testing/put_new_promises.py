"""Promises about names that one of many may take: put_new."""

import pytest

from tallymark.backends import AlreadyExists, Backend, checks
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
        await checks.refuses_a_taken_name(backend, "a", first=b"equal", others=[b"equal"])
        assert peek.objects() == {"a": b"equal"}

    @promise
    async def test_a_name_that_a_put_has_taken_is_refused(self, backend: Backend, peek: Peek) -> None:
        await backend.put("a", b"first")
        await checks.refuses_to_create(backend, "a", b"second")
        assert peek.objects() == {"a": b"first"}

    @promise
    async def test_a_name_is_free_again_after_its_delete(self, backend: Backend, peek: Peek) -> None:
        await backend.put_new("a", b"first")
        await checks.frees_a_deleted_name(backend, "a")
        assert peek.objects() == {"a": b"after a delete"}

    @large_promise
    async def test_of_many_writers_of_one_new_name_exactly_one_wins_round_after_round(
        self, backend: Backend, peek: Peek
    ) -> None:
        data = [b"%d" % writer for writer in range(self.caller_count)]
        rounds = [f"log/{number}" for number in range(self.race_round_count)]
        won = {path: await checks.has_one_winner(backend, path, data) for path in rounds}
        assert peek.objects() == won

    @promise
    async def test_of_many_writers_with_equal_bytes_exactly_one_wins_too(self, backend: Backend, peek: Peek) -> None:
        rounds = [f"log/{number}" for number in range(self.race_round_count // 10 or 1)]
        for path in rounds:
            await checks.has_one_winner(backend, path, [b"equal"] * self.caller_count)
        assert peek.objects() == dict.fromkeys(rounds, b"equal")
