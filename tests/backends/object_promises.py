"""Promises about whole objects and their names: get, put, put_new, list, delete."""

import math
import unicodedata

import anyio
import pytest

from tallymark.backends import AlreadyExists, InvalidPath, NotFound, open_backend
from tests.backends.peek import StoreTests, listed
from tests.support.loops import on_both_loops

ODD_PATHS = [
    "a b/c  d.parquet",
    " leading and trailing ",
    "year=2013/month=1/x.parquet",
    "city=S%C3%A3o%2FPaulo/%2F",
    "a+b/+",
    "comma,semicolon;/quote'\"",
    "back\\slash",
    "brackets[1]/*?{}",
    "#fragment?query=1",
    "...",
    ".hidden/~tilde/-dash",
    "tab is a control, but \u2028 and \u0085 are not",
    "\N{GRINNING FACE}/日本",
    "a" * 255,
    "/".join(["é" * 127] * 4),
    "/".join(["a" * 255] * 4),
]
"""Names that a store has to keep exactly. The last two are as long as paths and segments may be."""

REFUSED_PATHS = {
    "empty": "",
    "absolute": "/etc/passwd",
    "leaves the root": "a/../../b",
    "only dots": "..",
    "dot segment": "a/./b",
    "empty segment": "a//b",
    "ends in a slash": "a/",
    "newline": "a\nb",
    "carriage return": "a\rb",
    "nul": "a\0b",
    "delete character": "a\x7fb",
    "half a surrogate pair": "a\ud800b",
    "1,025 bytes": "/".join(["a" * 204] * 5) + "b",
}


class ObjectPromises(StoreTests):
    # get, put

    @on_both_loops
    async def test_what_was_put_is_stored_and_got(self, backend, peek):
        await backend.put("a/b", b"one")
        assert peek.objects() == {"a/b": b"one"}
        assert await backend.get("a/b") == b"one"

    @on_both_loops
    async def test_a_second_put_replaces_the_first(self, backend, peek):
        await backend.put("a", b"a long first")
        await backend.put("a", b"2")
        assert peek.objects() == {"a": b"2"}
        assert await backend.get("a") == b"2"

    @on_both_loops
    async def test_an_object_may_be_empty_or_larger_than_any_buffer(self, backend, peek):
        large = bytes(range(256)) * 20_000
        await backend.put("empty", b"")
        await backend.put_new("large", large)
        assert peek.objects() == {"empty": b"", "large": large}
        assert (await backend.get("empty"), await backend.get("large")) == (b"", large)

    @on_both_loops
    async def test_a_stored_object_does_not_change_with_the_buffer_it_came_from(self, backend):
        buffer = bytearray(b"before")
        await backend.put("a", buffer)
        buffer[:] = b"after!"
        assert await backend.get("a") == b"before"

    @on_both_loops
    async def test_getting_what_is_not_there_is_not_found(self, backend):
        await backend.put("a/b", b"")
        for path in ("x", "a/x", "a", "a/b/c", "x/y/z"):
            with pytest.raises(NotFound, match=path) as caught:
                await backend.get(path)
            assert isinstance(caught.value, FileNotFoundError)

    @on_both_loops
    async def test_a_reader_beside_replacing_puts_sees_one_whole_put(self, backend):
        puts = [bytes([number]) * 100_000 for number in range(12)]
        await backend.put("a", puts[0])
        seen = []

        async def read() -> None:
            for _ in range(30):
                seen.append(await backend.get("a"))  # noqa: PERF401

        async with anyio.create_task_group() as group:
            group.start_soon(read)
            for data in puts:
                await backend.put("a", data)
        assert len(seen) == 30
        assert set(seen) <= set(puts)

    # put_new

    @on_both_loops
    async def test_a_taken_name_is_refused_and_keeps_its_bytes(self, backend, peek):
        await backend.put_new("a/b", b"first")
        with pytest.raises(AlreadyExists, match="a/b") as caught:
            await backend.put_new("a/b", b"second")
        assert isinstance(caught.value, FileExistsError)
        assert peek.objects() == {"a/b": b"first"}

    @on_both_loops
    async def test_a_name_is_free_again_after_its_delete(self, backend, peek):
        await backend.put_new("a", b"first")
        await backend.delete(["a"])
        await backend.put_new("a", b"second")
        assert peek.objects() == {"a": b"second"}

    @on_both_loops
    async def test_of_32_writers_of_one_new_name_exactly_one_wins_round_after_round(self, backend, peek):
        won: dict[str, list[bytes]] = {}

        async def race(path: str, data: bytes) -> None:
            try:
                await backend.put_new(path, data)
            except AlreadyExists:
                return
            won.setdefault(path, []).append(data)

        rounds = [f"log/{number}" for number in range(20)]
        for path in rounds:
            async with anyio.create_task_group() as group:
                for writer in range(32):
                    group.start_soon(race, path, b"%d" % writer)
        assert {path: len(winners) for path, winners in won.items()} == dict.fromkeys(rounds, 1)
        assert peek.objects() == {path: winner for path, [winner] in won.items()}

    # list

    @on_both_loops
    async def test_a_listing_shows_every_object_below_at_any_depth_sorted_by_path(self, backend):
        paths = ["b", "a/z", "a/b/c/d", "a.b", "a-b", "a/b.c", "é", "z", "\N{GRINNING FACE}", "\uffee"]
        for path in paths:
            await backend.put(path, path.encode())
        found = [entry async for entry in backend.list("")]
        assert [entry.path for entry in found] == sorted(paths)
        assert [entry.size for entry in found] == [len(entry.path.encode()) for entry in found]

    @on_both_loops
    async def test_a_directory_ends_at_a_slash(self, backend):
        for path in ("dataset1/x", "dataset10/x", "dataset1.x/y", "other/dataset1/x"):
            await backend.put(path, b"")
        assert await listed(backend, "dataset1") == ["dataset1/x"]
        assert await listed(backend, "dataset10") == ["dataset10/x"]
        assert await listed(backend, "dataset") == []

    @on_both_loops
    async def test_a_listing_gives_paths_from_the_root_that_get_takes(self, backend):
        await backend.put("a/b/c", b"1")
        assert [await backend.get(path) for path in await listed(backend, "a/b")] == [b"1"]

    @on_both_loops
    async def test_a_directory_that_does_not_exist_is_empty(self, backend):
        await backend.put("a", b"")
        assert await listed(backend, "x/y") == []
        assert await listed(backend, "a") == []

    @on_both_loops
    async def test_a_listing_shows_no_deleted_object_and_each_put_that_returned(self, backend):
        for number in range(20):
            await backend.put(f"m/{number:02}", b"")
        await backend.delete([f"m/{number:02}" for number in range(0, 20, 2)])
        assert await listed(backend, "m") == [f"m/{number:02}" for number in range(1, 20, 2)]

    @on_both_loops
    async def test_the_stores_clock_does_not_run_backwards_over_puts(self, backend):
        for path in ("c", "a", "b"):
            await backend.put(path, b"")
        modified = {entry.path: entry.modified async for entry in backend.list("")}
        assert modified["c"] <= modified["a"] <= modified["b"]
        assert all(math.isfinite(when) for when in modified.values())

    # delete

    @on_both_loops
    async def test_deleted_objects_are_gone_and_others_stay(self, backend, peek):
        for path in ("a", "b/c", "b/d", "e"):
            await backend.put(path, b"")
        await backend.delete(["a", "b/c"])
        assert peek.objects() == {"b/d": b"", "e": b""}

    @on_both_loops
    async def test_deleting_what_is_absent_is_fine(self, backend, peek):
        await backend.put("a/b", b"1")
        await backend.delete([])
        await backend.delete(["x", "a/x", "a", "a/b/c", "x/y/z"])
        await backend.delete(["x"])
        assert peek.objects() == {"a/b": b"1"}

    @on_both_loops
    async def test_a_delete_leaves_no_empty_directory(self, backend, peek):
        for path in ("a/b/c/d", "a/b/x", "e/f"):
            await backend.put(path, b"")
        await backend.delete(["a/b/c/d", "e/f"])
        assert list(peek.directories()) == []
        assert peek.objects() == {"a/b/x": b""}

    @on_both_loops
    async def test_puts_into_a_directory_that_deletes_empty_again_and_again_all_succeed(self, backend, peek):
        async def churn(name: str) -> None:
            for number in range(25):
                await backend.put_new(f"d/e/{name}{number}", b"")
                await backend.delete([f"d/e/{name}{number}"])
            await backend.put(f"d/e/{name}", name.encode())

        async with anyio.create_task_group() as group:
            for name in "abcd":
                group.start_soon(churn, name)
        assert peek.objects() == {f"d/e/{name}": name.encode() for name in "abcd"}

    # names

    @pytest.mark.parametrize("path", ODD_PATHS, ids=lambda path: ascii(path)[:24])
    @on_both_loops
    async def test_an_odd_name_is_kept_exactly_by_every_verb(self, backend, peek, path):
        await backend.put_new(path, b"1")
        with pytest.raises(AlreadyExists):
            await backend.put_new(path, b"2")
        await backend.put(path, b"3")
        assert await listed(backend) == [path]
        assert peek.objects() == {path: b"3"}
        assert await backend.get(path) == b"3"
        await backend.delete([path])
        assert peek.objects() == {}
        await self.write_file(backend, path)
        assert peek.objects() == {path: b"rows"}

    @on_both_loops
    async def test_names_that_differ_in_unicode_form_or_case_are_different(self, backend, peek):
        names = [unicodedata.normalize(form, "Äé") for form in ("NFC", "NFD")] + ["äé"]
        for name in names:
            await backend.put_new(f"p/{name}", name.encode())
        assert {path: data.decode() for path, data in peek.objects().items()} == {f"p/{name}": name for name in names}

    @pytest.mark.parametrize("path", REFUSED_PATHS.values(), ids=REFUSED_PATHS)
    @on_both_loops
    async def test_a_name_that_no_store_may_be_given_is_refused_by_every_verb(self, backend, peek, path):
        await backend.put("keep", b"")
        for ask in (
            lambda: backend.get(path),
            lambda: backend.put(path, b""),
            lambda: backend.put_new(path, b""),
            lambda: backend.delete([path]),
            lambda: self.write_file(backend, path),
            lambda: backend.open_staging(path),
            lambda: backend.close_staging(path),
            *([lambda: listed(backend, path)] if path else []),
        ):
            with pytest.raises(InvalidPath) as caught:
                await ask()
            assert isinstance(caught.value, ValueError)
        assert peek.objects() == {"keep": b""}

    @on_both_loops
    async def test_the_url_opens_the_same_store_and_kind(self, backend):
        assert type(open_backend(backend.url)) is type(backend)
        assert open_backend(backend.url).url == backend.url
