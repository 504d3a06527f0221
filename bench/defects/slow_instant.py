"""The folder of one instant is slow: do the markers of others wait?

Hudi's server is held by named pipes in place of that instant's files: whoever opens one waits until its other end is
opened, too. Ours writes no file twice and reads no pipe: its storage is told to be slow below that folder.
"""

import os
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

from tallymark.bench.defects import stored
from tallymark.bench.defects.answer import Finding
from tallymark.bench.defects.asking import data_file
from tallymark.bench.defects.side import MarkerServer, Unanswered
from tallymark.bench.defects.trial import Ground, Trial

KNOWN, NEW, SLOW = "20260101000000001", "20260101000000002", "20260101000000003"

HELD_S = 2.0
"""How slow it is."""

LATE_S = HELD_S / 2
"""Who has waited as long has waited for the slow one."""

EACH = 5
"""Requests of the other two instants each, at once."""

FILES = 20
"""That a server of Hudi's spreads the markers of an instant over."""

HEAD_START_S = 0.3

ROUNDS = 10


@dataclass(frozen=True, slots=True)
class Others:
    """How long requests of other instants took while the slow one was being served, in seconds."""

    known: tuple[float, ...]
    new: tuple[float, ...]
    """Of an instant that the server had not met."""

    @property
    def is_lengthened(self) -> bool:
        return max(*self.known, *self.new) >= LATE_S

    def __str__(self) -> str:
        return (
            f"of the other instants, one that the server knew was answered within {max(self.known):.2f} s, one that it "
            f"had not met within {max(self.new):.2f} s"
        )


def findings(ground: Ground) -> Iterator[Finding]:
    if ground.has_hudi:
        yield _hudi_reads(ground)
        yield _hudi_writes(ground)
    ours = replace(ground.ours(), slow={"slow": SLOW, "slow_s": HELD_S})
    with ours.server(ground.table("slow")) as server, ThreadPoolExecutor(1 + 2 * EACH) as pool:
        _seconds(server, KNOWN, 0)
        slow = pool.submit(_seconds, server, SLOW, 0)
        threading.Event().wait(HEAD_START_S)
        others = _others(server, pool)
        assert not slow.done(), "it was to be slow"
        slow.result()
    yield _finding(ours.title, f"every request to its folder takes {HELD_S:g} s, reads, claim and flush alike", others)


def _hudi_reads(ground: Ground) -> Finding:
    side, table = ground.hudi(), ground.table("slow")
    pipe = stored.folder(table, SLOW) / "MARKERS3"
    with side.server(table) as server, ThreadPoolExecutor(1 + 2 * EACH) as pool:
        _seconds(server, KNOWN, 0)
        pipe.parent.mkdir(parents=True)
        os.mkfifo(pipe)
        slow = pool.submit(_seconds, server, SLOW, 0)
        threading.Event().wait(HEAD_START_S)
        release = _later(lambda: os.close(os.open(pipe, os.O_WRONLY)))
        others = _others(server, pool)
        release.join()
        slow.result()
    return _finding(
        side.title, f"one of its files, which a server reads when it meets the instant, takes {HELD_S:g} s", others
    )


def _hudi_writes(ground: Ground) -> Finding:
    """Which of the instants in a tick come first depends on a hash of their folders: many rounds, each with its own."""
    side, table = ground.hudi(), ground.table("slow")
    rounds = []
    with side.server(table) as server, ThreadPoolExecutor(1 + 2 * EACH) as pool:
        for number in range(ROUNDS):
            slow, known, new = (f"202601010001{number:02}00{each}" for each in range(3))
            for instant in (slow, known, new):
                _seconds(server, instant, 0)
            pipes = _pipes(stored.folder(table, slow))
            waiting = pool.submit(_seconds, server, slow, 1)
            release = _later(lambda pipes=pipes: _open_for_reading(pipes))  # type: ignore[misc]
            rounds.append(_others(server, pool, known, new))
            release.join()
            waiting.result()
    held = [others for others in rounds if others.is_lengthened]
    return Finding(
        trial="slow instant",
        side=side.title,
        tried=f"a flush of one instant takes {HELD_S:g} s; two others that the server knows ask for {EACH} markers "
        f"each in the same moment; {ROUNDS} rounds",
        shown="yes" if held else "no",
        seen=f"in {len(held)} of {ROUNDS} rounds a marker of another instant was acked after {LATE_S:g} s or more",
        counts={"rounds": ROUNDS, "rounds_held": len(held)},
    )


def _finding(side: str, tried: str, others: Others) -> Finding:
    return Finding(
        trial="slow instant",
        side=side,
        tried=f"one instant's folder is slow: {tried}",
        shown="yes" if others.is_lengthened else "no",
        seen=str(others),
        counts={"known_s_max": max(others.known), "new_s_max": max(others.new)},
    )


def _others(server: MarkerServer, pool: ThreadPoolExecutor, known: str = KNOWN, new: str = NEW) -> Others:
    asked: dict[str, list[Future[float]]] = {
        instant: [pool.submit(_seconds, server, instant, number) for number in range(1, 1 + EACH)]
        for instant in (known, new)
    }
    return Others(*(tuple(future.result() for future in asked[instant]) for instant in (known, new)))


def _seconds(server: MarkerServer, instant: str, number: int) -> float:
    """That a new marker took."""
    client, began = server.client(instant), time.perf_counter()
    try:
        assert client.create(data_file("day=01", number, instant))
    except Unanswered as error:
        raise AssertionError("it was to be slow, and not to fail") from error
    finally:
        client.close()
    return time.perf_counter() - began


def _later(act: Callable[[], None]) -> threading.Timer:
    timer = threading.Timer(HELD_S, act)
    timer.start()
    return timer


def _pipes(folder: Path) -> list[Path]:
    """In place of the files, and of those that are to come."""
    pipes = [folder / f"MARKERS{number}" for number in range(FILES)]
    for pipe in pipes:
        pipe.unlink(missing_ok=True)
        pipe.with_name(f".{pipe.name}.crc").unlink(missing_ok=True)
        os.mkfifo(pipe)
    return pipes


def _open_for_reading(pipes: list[Path]) -> None:
    """They stay open as long as this process lives, so that whoever writes is not told that nobody reads."""
    for pipe in pipes:
        os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)


TRIAL = Trial(
    "slow instant",
    "One thread carries the flushes of all instants that have requests in a tick, one after the other, and the first "
    "request of an instant reads its files under a lock that all new instants need: one slow folder delays others.",
    findings,
)
