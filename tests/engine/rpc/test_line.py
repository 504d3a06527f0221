import select
import threading
import time

from tallymark.engine.rpc.address import ServiceAddress
from tallymark.engine.rpc.ask import Ask
from tallymark.engine.rpc.line import Line
from tests.engine.rpc.serving import INSTANT, PATIENCE_S


def test_no_wake_up_is_left_behind_that_is_sent_while_the_line_listens():
    """Left in the socket it would end each wait of the line at once, and its thread would spin."""
    line = Line(ServiceAddress("127.0.0.1", 1, b"k" * 32), INSTANT, jitter=lambda: 0.5)
    begun, go, wake = threading.Event(), threading.Event(), line._wake

    def wake_slowly() -> None:
        begun.set()
        go.wait(PATIENCE_S)
        wake()

    line._wake = wake_slowly  # type: ignore[method-assign]
    ask = Ask(("p",), "CREATE", time.monotonic() + PATIENCE_S, wait_s=PATIENCE_S)
    asker = threading.Thread(target=line.put, args=(ask,))
    listener = threading.Thread(target=line._listen_to_callers)
    asker.start()
    assert begun.wait(PATIENCE_S)
    listener.start()
    listener.join(0.1)  # it reads the socket, or waits for the lock, before the wake-up is sent
    go.set()
    for thread in (asker, listener):
        thread.join(PATIENCE_S)
    assert not line._conversation.is_idle, "the ask was taken"
    assert not select.select([line._wake_reader], [], [], 0)[0]
    line.drop_after_fork()


def test_the_thread_leaves_the_connection_to_callers_who_have_just_talked() -> None:
    """Their answers would wake it, too, with each of them."""
    line = Line(ServiceAddress("127.0.0.1", 1, b"k" * 32), INSTANT, jitter=lambda: 0.5)
    line._talker, line._turns = None, 2
    assert not line._takes_turn(1)
    assert line._talker is None
    assert line._takes_turn(2), "nobody has talked since"
    line._talker, line._turns = None, 3
    line._inbox.append(Ask(("p",), "CREATE", time.monotonic() + PATIENCE_S))
    assert line._takes_turn(2), "somebody asks"
    line.drop_after_fork()
