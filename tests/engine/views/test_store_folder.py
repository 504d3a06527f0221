"""A store's folder: its own while its process lives, swept once it is gone."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tallymark.engine.errors import InvalidRequest, MissingExtra
from tallymark.engine.settings import ViewSettings
from tallymark.engine.views.block import pack_rows
from tallymark.engine.views.open import open_store
from tallymark.engine.views.store_folder import StoreFolder, sweep
from tests.engine.views.stores import ON_DISK, opened, row

HOLDS_A_STORE = """
import sys
from tallymark.engine.settings import ViewSettings
from tallymark.engine.views.block import pack_rows
from tallymark.engine.views.open import open_store
from tests.engine.views.stores import row
store = open_store(ViewSettings(store=sys.argv[1], memory_bytes=1, folder=sys.argv[2]))
store.load("month=1", pack_rows([row("first")]))
print("held", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def elsewhere(tmp_path, request):
    """A process that holds a store below the folder."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDS_A_STORE, request.param, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        yield process
        process.kill()


@pytest.mark.parametrize("elsewhere", ["spillable", "key-value"], indirect=True)
def test_the_folder_of_a_process_is_left_alone_while_that_lives_and_swept_by_the_next_store_once_it_is_killed(
    elsewhere, tmp_path
):
    (there,) = tmp_path.iterdir()
    assert there.name.startswith(f"tallymark-view-{elsewhere.pid}-")
    before = sorted(there.rglob("*"))
    elsewhere.send_signal(signal.SIGSTOP)
    with opened("spillable", tmp_path):
        assert sorted(there.rglob("*")) == before
    elsewhere.kill()
    elsewhere.wait()
    with opened("spillable", tmp_path):
        assert not there.exists()


def test_a_store_sweeps_no_other_of_its_own_process(tmp_path):
    with opened("spillable, none in memory", tmp_path) as store, opened("key-value", tmp_path) as other:
        store.load("month=1", pack_rows([row("first")]))
        other.load("month=1", pack_rows([row("first")]))
        with opened("spillable", tmp_path):
            assert len(list(tmp_path.iterdir())) == 2
        assert store.rows("month=1") == other.rows("month=1") == pack_rows([row("first")])


@pytest.mark.parametrize("boot", ["", "another boot or machine"])
def test_a_folder_of_which_this_machine_cannot_tell_whose_it_is_and_what_else_lies_there_is_left_alone(tmp_path, boot):
    for name in ("tallymark-view-1-x", "tallymark-view-1-empty"):
        (tmp_path / name).mkdir()
    (tmp_path / "tallymark-view-1-x/owner.lock").write_text(boot)
    (tmp_path / "tallymark-view-notes.txt").write_text("mine")
    sweep(tmp_path)
    assert len(list(tmp_path.iterdir())) == 3


def test_a_folder_is_closed_to_other_users_and_stays_where_a_fork_closes_its_store(tmp_path):
    folder = StoreFolder(tmp_path)
    assert folder.path.stat().st_mode & 0o777 == 0o700
    child = os.fork()
    if child == 0:
        folder.remove()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    assert folder.path.exists()
    sweep(tmp_path)
    assert folder.path.exists()
    folder.remove()
    assert not folder.path.exists()


@pytest.mark.parametrize("kind", ON_DISK)
def test_a_store_makes_its_folder_where_there_is_none(kind, tmp_path):
    with opened(kind, tmp_path / "a" / "b") as store:
        store.load("month=1", pack_rows([row("first")]))
        assert store.rows("month=1") == pack_rows([row("first")])


@pytest.mark.parametrize("kind", ["spillable", "key-value"])
def test_a_folder_that_cannot_be_one_is_refused_by_name(kind, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InvalidRequest, match=r"setting folder='.*/file'.*name a folder"):
        open_store(ViewSettings(store=kind, folder=str(tmp_path / "file")))


def test_a_store_in_memory_touches_no_disk(tmp_path):
    open_store(ViewSettings(folder=str(tmp_path / "none"))).load("month=1", b"")
    assert not (tmp_path / "none").exists()


def test_without_rocksdict_the_key_value_store_names_the_extra(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "rocksdict", None)
    with pytest.raises(MissingExtra, match=r"pip install 'tallymark\[views\]'"):
        open_store(ViewSettings(store="key-value", folder=str(tmp_path)))


def test_nothing_imports_rocksdict_before_such_a_store_is_opened(tmp_path):
    program = (
        "import sys\nfrom tallymark.engine.settings import ViewSettings\n"
        "from tallymark.engine.views.open import open_store\n"
        f"open_store(ViewSettings(store='spillable', folder={str(tmp_path)!r}))\n"
        "print('rocksdict' in sys.modules)"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ended.stdout == "False\n"


def test_by_default_a_store_lies_where_temporary_files_do(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    store = open_store(ViewSettings(store="spillable", memory_bytes=1))
    store.load("month=1", pack_rows([row("first")]))
    assert [path.name.startswith("tallymark-view-") for path in Path(tmp_path).iterdir()] == [True]
    store.close()
