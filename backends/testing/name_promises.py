"""Promises about names: kept exactly, or refused."""

import unicodedata
from collections.abc import Awaitable, Callable

import pytest

from tallymark.backends import AlreadyExists, Backend, InvalidPath
from tallymark.backends.testing.store import Peek, StoreTests, listed, promise

ODD_PATHS = [
    "a b/c  d.parquet",
    " leading and trailing ",
    "year=2013/month=1/x.parquet",
    "city=S%C3%A3o%2FPaulo/%2F",
    "a+b/+",
    "100%/%/%zz/%00/%2e%2e",
    "comma,semicolon;/quote'\"",
    "back\\slash",
    "brackets[1]/*?{}",
    "#fragment?query=1&more",
    "s3:/bucket/:key",
    "<xml>&amp;]]></xml>",
    "...",
    ".hidden/~tilde/-dash",
    "tab is a control, but \u2028 and \u0085 are not",
    "\N{GRINNING FACE}/日本",
    "a" * 255,
    "/".join(["é" * 127] * 4),
    "/".join(["a" * 255] * 4),
]
"""Names that a store has to keep exactly. The last two are as long as paths and segments may be."""

ALIKE_PATHS = ["a b", "a+b", "a%20b", "a%2Bb", "a%2520b", "a_b", "A b", "a  b", "a b ", " a b", "a\u00a0b"]
"""Different names that careless encoding or trimming makes one."""

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


class NamePromises(StoreTests):
    @pytest.mark.parametrize("path", ODD_PATHS, ids=lambda path: ascii(path)[:24])
    @promise
    async def test_an_odd_name_is_kept_exactly_by_every_verb(self, backend: Backend, peek: Peek, path: str) -> None:
        if path in self.refused_paths:
            await self.is_refused(backend, peek, path)
            return
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

    @pytest.mark.parametrize("path", ODD_PATHS[:-2], ids=lambda path: ascii(path)[:24])
    @promise
    async def test_a_directory_of_an_odd_name_lists_what_is_in_it(self, backend: Backend, path: str) -> None:
        if path in self.refused_paths:
            with pytest.raises(InvalidPath):
                await listed(backend, path)
            return
        directory = path[:200]
        for inside in (f"{directory}/a", f"{directory}/b/c", f"{directory}x/a", f"x{directory}/a"):
            await backend.put(inside, b"")
        assert await listed(backend, directory) == [f"{directory}/a", f"{directory}/b/c"]

    @promise
    async def test_odd_names_are_listed_and_deleted_together(self, backend: Backend, peek: Peek) -> None:
        kept = [path for path in ODD_PATHS[:-2] if path not in self.refused_paths]
        paths = [f"{number:02}/{path}" for number, path in enumerate(kept)]
        await self.fill(backend, [*paths, "stays"])
        assert await listed(backend) == sorted([*paths, "stays"])
        await backend.delete(paths)
        assert peek.objects() == {"stays": b"stays"}

    @promise
    async def test_names_that_look_alike_when_encoded_are_different(self, backend: Backend, peek: Peek) -> None:
        for path in ALIKE_PATHS:
            await backend.put_new(f"p/{path}", path.encode())
        assert peek.objects() == {f"p/{path}": path.encode() for path in ALIKE_PATHS}
        await backend.delete([f"p/{path}" for path in ALIKE_PATHS[1:]])
        assert peek.objects() == {f"p/{ALIKE_PATHS[0]}": ALIKE_PATHS[0].encode()}

    @promise
    async def test_names_that_differ_in_unicode_form_or_case_are_different(self, backend: Backend, peek: Peek) -> None:
        names = [unicodedata.normalize(form, "Äé") for form in ("NFC", "NFD")] + ["äé"]
        for name in names:
            await backend.put_new(f"p/{name}", name.encode())
        assert {path: data.decode() for path, data in peek.objects().items()} == {f"p/{name}": name for name in names}

    @pytest.mark.parametrize("path", REFUSED_PATHS.values(), ids=REFUSED_PATHS)
    @promise
    async def test_a_name_that_no_store_may_be_given_is_refused_by_every_verb(
        self, backend: Backend, peek: Peek, path: str
    ) -> None:
        await self.is_refused(backend, peek, path)

    async def is_refused(self, backend: Backend, peek: Peek, path: str) -> None:
        """By every verb, and before anything is done."""
        await backend.put("keep", b"")
        asks: list[Callable[[], Awaitable[object]]] = [
            lambda: backend.get(path),
            lambda: backend.put(path, b""),
            lambda: backend.put_new(path, b""),
            lambda: backend.delete([path]),
            lambda: backend.delete(["keep", path]),
            lambda: self.write_file(backend, path),
            lambda: backend.open_staging(path),
            lambda: backend.close_staging(path),
        ]
        if path:  # "" is the root
            asks.append(lambda: listed(backend, path))
        for ask in asks:
            with pytest.raises(InvalidPath) as caught:
                await ask()
            assert isinstance(caught.value, ValueError)
        assert peek.objects() == {"keep": b""}
