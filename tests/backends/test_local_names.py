"""NFS asks for a link or a rename again when its answer was lost, and is told that it has been made."""

import errno
import os
from pathlib import Path

import pytest

from tallymark.backends import AlreadyExists, Unavailable
from tallymark.backends.testing import STAGING
from tests.backends.local_peek import LocalPeek
from tests.backends.test_local_durability import written
from tests.support.loops import on_both_loops

LOST = pytest.mark.parametrize("code", [errno.EEXIST, errno.EIO, errno.ETIMEDOUT, errno.ESTALE])


@pytest.fixture
def peek(tmp_path: Path) -> LocalPeek:
    return LocalPeek(tmp_path)


def answering(monkeypatch: pytest.MonkeyPatch, call: str, code: int, *, landed: bool) -> None:
    """Let the call fail after it was made, or without."""
    real = getattr(os, call)

    def ask(source, target):
        if landed:
            real(source, target)
        raise OSError(code, os.strerror(code), str(source), None, str(target))

    monkeypatch.setattr(os, call, ask)


@LOST
@pytest.mark.parametrize("verb", ["put_new", "publish"])
@on_both_loops
async def test_a_link_that_was_made_and_whose_answer_was_lost_is_ours(peek, monkeypatch, verb, code):
    (peek.root / "p").mkdir()
    answering(monkeypatch, "link", code, landed=True)
    await written(peek, verb, "p/a", b"mine")
    await peek.backend.close_staging(STAGING)
    assert peek.objects() == {"p/a": b"mine"}


@on_both_loops
async def test_a_name_of_another_with_the_same_bytes_is_not_taken_for_ours_though_our_file_has_a_second_name(
    peek, monkeypatch
):
    (peek.root / "p").mkdir()
    (peek.root / "p/a").write_bytes(b"equal")
    real = os.link

    def back_up_first(source, target):
        real(source, peek.root / "backup")
        real(source, target)

    monkeypatch.setattr(os, "link", back_up_first)
    with pytest.raises(AlreadyExists):
        await peek.backend.put_new("p/a", b"equal")
    assert peek.objects() == {"p/a": b"equal", "backup": b"equal"}


@pytest.mark.parametrize("code", [errno.EIO, errno.ETIMEDOUT, errno.ESTALE])
@on_both_loops
async def test_a_link_without_an_answer_that_is_not_there_is_unknown(peek, monkeypatch, code):
    (peek.root / "p").mkdir()
    answering(monkeypatch, "link", code, landed=False)
    with pytest.raises(Unavailable, match="may have succeeded or not"):
        await peek.backend.put_new("p/a", b"mine")
    assert peek.objects() == {}


@on_both_loops
async def test_a_rename_that_was_made_and_whose_answer_was_lost_has_replaced_the_object(peek, monkeypatch):
    await peek.backend.put("p/a", b"old")
    answering(monkeypatch, "replace", errno.ENOENT, landed=True)
    await peek.backend.put("p/a", b"new")
    assert peek.objects() == {"p/a": b"new"}
