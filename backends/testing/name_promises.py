"""Promises about names: kept exactly, or refused."""

from collections.abc import Awaitable, Callable

import pytest

from tallymark.backends import Backend, InvalidPath
from tallymark.backends.checks import ODD_PATHS, UNICODE_FORMS, refuses_to_create
from tallymark.backends.testing.store import Peek, StoreTests, listed, promise

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
        await refuses_to_create(backend, path, b"2")
        await backend.put(path, b"3")
        assert await listed(backend) == [path]
        assert peek.objects() == {path: b"3"}
        assert await backend.get(path) == await backend.get_range(path, 0, 1) == b"3"
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
        for name in UNICODE_FORMS:
            await backend.put_new(f"p/{name}", name.encode())
        assert peek.objects() == {f"p/{name}": name.encode() for name in UNICODE_FORMS}

    @pytest.mark.parametrize("path", REFUSED_PATHS.values(), ids=REFUSED_PATHS)
    @promise
    async def test_a_name_that_no_store_may_be_given_is_refused_by_every_verb(
        self, backend: Backend, peek: Peek, path: str
    ) -> None:
        await self.is_refused(backend, peek, path)

    async def is_refused(self, backend: Backend, peek: Peek, path: str) -> None:
        """Check that every verb refuses the path before it does anything."""
        await backend.put("keep", b"")
        calls: list[Callable[[], Awaitable[object]]] = [
            lambda: backend.get(path),
            lambda: backend.get_range(path, 0, 1),
            lambda: backend.put(path, b""),
            lambda: backend.put_new(path, b""),
            lambda: backend.delete([path]),
            lambda: backend.delete(["keep", path]),
            lambda: self.write_file(backend, path),
            lambda: backend.open_staging(path),
            lambda: backend.close_staging(path),
        ]
        if path:  # "" is the root
            calls.append(lambda: listed(backend, path))
        for call in calls:
            with pytest.raises(InvalidPath) as caught:
                await call()
            assert isinstance(caught.value, ValueError)
        assert peek.objects() == {"keep": b""}
