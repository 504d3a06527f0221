"""What must hold of a table at rest, judged from its bare objects: nothing here reads storage through the library."""

import io
import json
import re
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from itertools import count
from typing import Any

import msgpack
import pyarrow.parquet as pq

Storage = Mapping[str, bytes]
"""Every object, path to bytes."""

FLOOR = "19700101000000000"

LOG = ".hoodie/.tallymark/log/"
_FENCES = ".hoodie/.tallymark/fence/"
_BOOKKEEPING = tuple(
    f".hoodie/{folder}/" for folder in (".temp", *(f".tallymark/{name}" for name in ("open", "beat", "seal", "read")))
)
_INSTANT_FILE = re.compile(r"\.hoodie/(\d{17})\.(.+)")


def log_entries(storage: Storage) -> list[dict[str, Any]]:
    """The entries of the commit log in order, bodies included. Those of the table have numbers without a gap."""
    found = _heads(storage)
    own = max((number for number in found if found[number].get("table", "") == table_id(storage)), default=0)
    assert set(found) >= set(range(1, own + 1)), f"the log has a gap: {sorted(found)}"
    heads = [found[number] for number in range(1, own + 1)]
    return [whole_entry(head, storage.__getitem__) for head in heads]


def _heads(storage: Storage) -> dict[int, dict[str, Any]]:
    return {int(path.removeprefix(LOG)): entry_fields(data) for path, data in storage.items() if path.startswith(LOG)}


def log_head(storage: Storage) -> int:
    """The number of the last entry before which none is missing, whosever they are."""
    numbers = {int(path.removeprefix(LOG)) for path in storage if path.startswith(LOG)}
    return next(number for number in count() if number + 1 not in numbers)


def entries_beyond_a_gap(storage: Storage) -> list[str]:
    """The paths of the entries that no reader reaches."""
    return [path for path in storage if path.startswith(LOG) and int(path.removeprefix(LOG)) > log_head(storage)]


def log_hash(table: str, entries: Iterable[Mapping[str, Any]]) -> bytes:
    """Return the hash that the entry after these carries."""
    digest = sha256(table.encode()).digest()
    for position, entry in enumerate(entries, start=1):
        digest = _hash_after(digest, position, entry)
    return digest


def _hash_after(digest: bytes, position: int, entry: Mapping[str, Any]) -> bytes:
    return sha256(digest + msgpack.packb([position, entry["instant"], entry["kind"], entry["nonce"]])).digest()


def is_linked(entry: Mapping[str, Any], table: str, before: Sequence[Mapping[str, Any]]) -> bool:
    """Return whether an entry continues a table's log, which these are."""
    return entry.get("table", "") == table and (not table or entry["previous"] == log_hash(table, before))


def whole_entry(head: dict[str, Any], read: Callable[[str], bytes]) -> dict[str, Any]:
    """The fields of an entry of the log, with those of its body, where they are in another object."""
    return {**entry_fields(read(head["body"])), **head} if "body" in head else head


def entry_fields(data: bytes) -> dict[str, Any]:
    """The fields of an entry of the log, behind its head where it has one."""
    if data[:4] == b"TMLE":
        assert zlib.crc32(data[8:]) == int.from_bytes(data[4:8], "little"), "an entry is damaged"
        data = data[8:]
    fields: dict[str, Any] = msgpack.unpackb(data)
    return fields


def members(entry: dict[str, Any]) -> list[dict[str, Any]]:
    """The decisions of an entry: those of a group, or the entry itself."""
    return list(entry["group"]) if entry["kind"] == "group" else [entry]


def table_id(storage: Storage) -> str:
    lines = storage.get(".hoodie/hoodie.properties", b"").decode().splitlines()
    return next((line.partition("=")[2] for line in lines if line.startswith("tallymark.id=")), "")


def positioned(storage: Storage) -> Iterator[tuple[int, dict[str, Any]]]:
    """The decisions of the entries that continue the table's log, with their positions; those of another log's writers
    are left out.
    """
    table = table_id(storage)
    digest = log_hash(table, ())
    for position, entry in enumerate(log_entries(storage), start=1):
        if entry.get("table", "") == table and (not table or entry["previous"] == digest):
            yield from ((position, member) for member in members(entry))
        digest = _hash_after(digest, position, entry)


def decisions(storage: Storage) -> dict[str, dict[str, Any]]:
    """The entry that decided each instant, in the order of the log: an instant's first."""
    decided: dict[str, dict[str, Any]] = {}
    for _, entry in positioned(storage):
        decided.setdefault(entry["instant"], entry)
    return decided


def commits(storage: Storage) -> list[dict[str, Any]]:
    return [entry for entry in decisions(storage).values() if entry["kind"] == "commit"]


def committed_files(storage: Storage) -> set[str]:
    """The files that the log says the table holds."""
    files: set[str] = set()
    for entry in commits(storage):
        files -= {file_path(file) for file in entry["removed"]}
        files |= {file_path(file) for file in entry["added"]}
    return files


def keeps_replaced_files(storage: Storage) -> bool:
    """True of a table that was made with ``readers="table"``."""
    return b"\ntallymark.readers=table\n" in storage[".hoodie/hoodie.properties"]


def retained_files(storage: Storage) -> set[str]:
    """The files that were replaced, and that no clean has let go: none with ``readers="directory"``."""
    if not keeps_replaced_files(storage):
        return set()
    decided = {entry["nonce"] for entry in decisions(storage).values()}
    entries = [(n, entry) for n, entry in positioned(storage) if entry["nonce"] in decided]
    horizon = max((entry["horizon"] for _, entry in entries if entry["kind"] == "clean"), default=0)
    late = (entry for number, entry in entries if entry["kind"] == "commit" and number > horizon)
    return {file_path(file) for entry in late for file in entry["removed"]}


def fences(storage: Storage) -> set[str]:
    """The paths that are logged as fences: those of a list's own instant."""
    return {
        path
        for name, data in storage.items()
        if name.startswith(_FENCES)
        for path in msgpack.unpackb(data)
        if path.endswith(f"_{name.split('/')[3]}.parquet")
    }


def data_files(storage: Storage) -> set[str]:
    """All that a reader of the plain directory takes for data."""
    return {path for path in storage if not path.startswith(".hoodie") and "/.hoodie" not in path}


def only_committed_files_exist(storage: Storage) -> None:
    """What is neither committed, nor retained, nor a logged fence is not there; and a fence holds no rows."""
    strays = data_files(storage) - committed_files(storage) - retained_files(storage) - fences(storage)
    assert not strays, f"neither committed nor a logged fence: {sorted(strays)}"
    for path in fences(storage) & data_files(storage):
        assert path not in committed_files(storage), f"a committed file is listed as a fence: {path}"
        assert pq.read_metadata(io.BytesIO(storage[path])).num_rows == 0, f"rows in a fence: {path}"


def every_committed_file_exists(storage: Storage) -> None:
    """Each is there, as large and with as many rows as its entry says; and so is what is retained."""
    missing = (committed_files(storage) | retained_files(storage)) - set(storage)
    assert not missing, f"committed and gone: {sorted(missing)}"
    facts = {file_path(file): file for entry in commits(storage) for file in entry["added"]}
    for path in committed_files(storage):
        _, _, rows, size, *_ = facts[path]
        assert len(storage[path]) == size, f"{path} has {len(storage[path])} bytes, its entry says {size}"
        assert pq.read_metadata(io.BytesIO(storage[path])).num_rows == rows, path


def no_bookkeeping_is_left(storage: Storage) -> None:
    """No instant is open: no reservation, beat, seal, marker or staged file; nobody reads; no body without an entry."""
    left = [path for path in storage if path.startswith(_BOOKKEEPING)]
    assert not left, f"left behind: {sorted(left)}"
    bodies = {path for path in storage if path.startswith(".hoodie/.tallymark/body/")}
    nonces = {member["nonce"] for entry in log_entries(storage) for member in members(entry)}
    orphans = {path for path in bodies if path.rpartition("/")[2] not in nonces}
    assert not orphans, f"bodies without an entry: {sorted(orphans)}"


def projection_follows_the_log(storage: Storage) -> None:
    """Hudi's timeline is the floor and the log's commits, each whole and saying the same; nothing is in flight.

    Where it was archived, it begins later.
    """
    wanted = {FLOOR: "commit"} | {entry["instant"]: _action(entry) for entry in commits(storage)}
    states: dict[str, set[str]] = {}
    for path in storage:
        if found := _INSTANT_FILE.fullmatch(path):
            states.setdefault(found[1], set()).add(found[2])
    first = min(states)  # of an archived timeline, a later one than the floor
    assert states == {instant: _whole(action) for instant, action in wanted.items() if instant >= first}
    for entry in (entry for entry in commits(storage) if entry["instant"] >= first):
        projected = json.loads(storage[f".hoodie/{entry['instant']}.{wanted[entry['instant']]}"])
        assert _added_by(projected) == sorted((file_path(file), file[2], file[3]) for file in entry["added"])
        assert _removed_by(projected) == sorted((file[0], file[1].partition("_")[0]) for file in entry["removed"])


def projection_is_a_prefix_of_the_log(storage: Storage) -> None:
    """At any moment: no entry is visible to readers of the Hudi format before an older one; members of a group are in
    any order, the last one last.
    """
    decided = {entry["nonce"] for entry in commits(storage)}
    visible: dict[int, list[bool]] = {}
    for position, entry in positioned(storage):
        if entry["nonce"] in decided:
            is_visible = f".hoodie/{entry['instant']}.{_action(entry)}" in storage
            visible.setdefault(position, []).append(is_visible)
    flat = [each for of_entry in visible.values() for each in (*sorted(of_entry[:-1], reverse=True), of_entry[-1])]
    assert flat == sorted(flat, reverse=True), f"projected out of order: {visible}"


def one_decision_an_instant(storage: Storage) -> None:
    """No entry of the table's own is void, and no two instants share a file."""
    instants = [entry["instant"] for _, entry in positioned(storage)]
    assert len(instants) == len(set(instants)), f"decided twice: {instants}"
    every_file_is_added_once(storage)


def every_file_is_added_once(storage: Storage) -> None:
    """By the instant in its name, and with a file id of its own."""
    added = [file_path(file) for entry in commits(storage) for file in entry["added"]]
    assert len(added) == len(set(added)), "a file was added twice"
    ids = [file[1].partition("_")[0] for entry in commits(storage) for file in entry["added"]]
    assert len(ids) == len(set(ids)), "a file id was used twice"
    for entry in commits(storage):
        for file in entry["added"]:
            assert file[1].endswith(f"_{entry['instant']}.parquet"), f"{file[1]} is not of {entry['instant']}"


BY_APPENDS = ("append", "delete")
"""Operations whose files may have rows of appends only: a delete by key leaves some of those of a file."""


def overwrites_replace_what_their_base_held(storage: Storage) -> None:
    """Each removed exactly the files that its scope held when it began; what it found there later is of appends."""
    live: dict[str, Any] = {}
    added_by: dict[str, str] = {}
    states = [live]
    counts = {entry["nonce"] for entry in decisions(storage).values() if entry["kind"] == "commit"}
    for position, whole in enumerate(log_entries(storage), start=1):
        for entry in (member for member in members(whole) if member["nonce"] in counts):
            removed = {file_path(file) for file in entry["removed"]}
            if (scope := entry["scope"]) is not None:
                held = {path for path, file in states[entry["base"]].items() if holds(scope, file[0])}
                assert removed == held, f"entry {position} removed {sorted(removed)}, its base held {sorted(held)}"
                met = [path for path, file in live.items() if holds(scope, file[0]) and path not in held]
                rivals = [path for path in met if added_by[path] not in BY_APPENDS]
                assert not rivals, f"entry {position} overwrote beside another overwrite, whose files stay: {rivals}"
            assert removed <= live.keys(), f"entry {position} removed what was gone: {sorted(removed - live.keys())}"
            live = {path: file for path, file in live.items() if path not in removed}
            live |= {file_path(file): file for file in entry["added"]}
            added_by |= {file_path(file): entry["operation"] for file in entry["added"]}
        states.append(live)


def once_and_only_once(storage: Storage) -> None:
    """Of all writes that carry the same txn one has committed, at most."""
    found = Counter(entry["txn"] for entry in commits(storage) if entry.get("txn"))
    assert all(count == 1 for count in found.values()), f"committed more than once: {found}"


def partitions_are_known_to_hudi(storage: Storage) -> None:
    """Hudi on Java takes a directory for a partition by a file in it."""
    for partition in {path.rpartition("/")[0] for path in committed_files(storage)}:
        name = f"{partition}/.hoodie_partition_metadata".lstrip("/")
        assert name in storage, f"a partition with files has no metadata: {name}"


def timeline_instant(path: str) -> str | None:
    """The instant of a completed action of the Hudi timeline; None for every other object."""
    found = _INSTANT_FILE.fullmatch(path)
    return found[1] if found and found[2] in ("commit", "replacecommit") else None


def hudi_files(storage: Storage) -> frozenset[str]:
    """What a reader of the Hudi format takes for the table, as hudi-rs finds it: of the files that lie in partitions,
    those whose instant is completed, or older than the whole timeline; without the file groups that were replaced."""
    completed = {instant: path for path in storage if (instant := timeline_instant(path))}
    oldest = min(completed, default=None)
    replaced: set[tuple[str, str]] = set()
    for path in completed.values():
        if path.endswith(".replacecommit"):
            replaced |= set(_pairs(json.loads(storage[path])["partitionToReplaceFileIds"]))
    return frozenset(
        path
        for path in data_files(storage)
        if (instant := path[:-8].rpartition("_")[2]) in completed or (oldest is not None and instant < oldest)
        if (path.rpartition("/")[0], path.rpartition("/")[2].partition("_")[0]) not in replaced
    )


def table_is_at_rest(storage: Storage) -> None:
    """All of them: nobody writes, and nothing is left to do."""
    only_committed_files_exist(storage)
    every_committed_file_exists(storage)
    no_bookkeeping_is_left(storage)
    projection_follows_the_log(storage)
    partitions_are_known_to_hudi(storage)
    one_decision_an_instant(storage)


def file_path(file: list[Any]) -> str:
    return f"{file[0]}/{file[1]}" if file[0] else str(file[1])


def holds(scope: Mapping[str, Any], partition: str) -> bool:
    """Whether a commit of this scope replaces what lies in the partition."""
    below = (prefix for prefix in scope["prefixes"] if f"{partition}/".startswith(f"{prefix}/"))
    return bool(scope["all"]) or partition in scope["partitions"] or any(below)


def _action(entry: dict[str, Any]) -> str:
    return "replacecommit" if entry["operation"] == "overwrite" or entry["removed"] else "commit"


def _whole(action: str) -> set[str]:
    inflight = "inflight" if action == "commit" else f"{action}.inflight"
    return {f"{action}.requested", inflight, action}


def _added_by(projected: dict[str, Any]) -> list[tuple[str, int, int]]:
    return sorted(
        (stat["path"], stat["numWrites"], stat["fileSizeInBytes"])
        for stats in projected["partitionToWriteStats"].values()
        for stat in stats
    )


def _removed_by(projected: dict[str, Any]) -> list[tuple[str, str]]:
    return sorted(_pairs(projected.get("partitionToReplaceFileIds", {})))


def _pairs(replaced: dict[str, list[str]]) -> Iterator[tuple[str, str]]:
    return ((partition, file_id) for partition, ids in replaced.items() for file_id in ids)
