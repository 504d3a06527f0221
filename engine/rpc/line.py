"""A client's line to the service: a daemon thread that dials, talks, and dials again; and whose turn it is to talk.

A caller who waits for an answer talks itself, if nobody else does: it sends, listens, and settles what is answered,
until its own ask is settled. So an answer wakes one thread, the one that waits for it. The daemon thread listens for
those who do not wait, goes on where a caller ends and others still wait, and sees to whatever goes wrong.

Owns: the thread, the turn, and when to try again. Does not own: what settles an ask (``conversation``), nor bytes
(``call``).
"""

import contextlib
import select
import socket
import threading
import time
from collections.abc import Callable

from tallymark.backends.errors import TallymarkError
from tallymark.backends.events import EventLog
from tallymark.engine.errors import Closed, InvalidRequest, ServiceUnavailable, Stopped
from tallymark.engine.rpc.address import ServiceAddress
from tallymark.engine.rpc.ask import AnyAsk
from tallymark.engine.rpc.connection import Call, dial
from tallymark.engine.rpc.pending_requests import Conversation

DIAL_TIMEOUT_S = 5.0
"""For one attempt to connect; then another begins."""
PAUSE_S_MIN, PAUSE_S_MAX = 0.05, 2.0
"""Between two attempts, doubled from one to the next and spread by half of it either way."""

REFUSED_S_MAX = 10.0
"""The service listens before anybody knows its address. If its machine says for so long that nobody does, it has ended;
meanwhile whatever forwards connections to it may be busy with itself."""

ASIDE_S = 1.0
"""For so long after the last caller has talked the thread leaves the connection to callers; then it watches it, and
notices when the service ends it. Whoever asks meanwhile notices that first."""

_THREAD = 0
"""The thread's own turn; no ident of a thread is 0."""

_events = EventLog(__name__)


class Line:
    """Settles every ask that ``put`` has taken, within its deadline.

    A line ends once, by ``hang_up`` or by a fault of its own, and takes no asks after that.

    Who is interrupted amid telling another caller's future of its result leaves that caller to the end of its time: it
    may have been told, and cannot be told twice.

    The connection and the conversation are of whoever has the turn, which changes hands under the lock. The thread has
    it but while a connection stands and nobody waits for an answer.
    """

    def __init__(self, address: ServiceAddress, instant: str, *, jitter: Callable[[], float]) -> None:
        """``jitter`` is as of ``random.random``."""
        self._address = address
        self._instant = instant
        self._jitter = jitter
        self._conversation = Conversation(jitter)
        self._call: Call | None = None
        self._farewell: Stopped | None = None
        """What the service has said at the end of the job. Nobody is there any more."""
        self._lock = threading.Lock()
        self._inbox: list[AnyAsk] = []
        self._is_woken = False
        """A wake-up of who has the turn is on its way: one is enough for any number of asks."""
        self._talker: int | None = _THREAD
        """Who has the turn: the thread, a caller by its ident, or nobody."""
        self._turns = 0
        """That callers have had."""
        self._trouble: BaseException | None = None
        """What ended a caller's turn, for the thread to see to. Nobody else talks before that."""
        self._is_aside = False
        """The thread waits until it is needed, and for nothing else."""
        self._is_needed = threading.Event()
        self._stop = threading.Event()
        self._wake_reader, self._wake_writer = socket.socketpair()
        self._wake_reader.setblocking(False)
        self._wake_writer.setblocking(False)
        self._thread = threading.Thread(target=self._run, name=f"tallymark markers {instant}", daemon=True)

    def start(self) -> None:
        self._thread.start()

    @property
    def has_ended(self) -> bool:
        return self._stop.is_set()

    def put(self, ask: AnyAsk, *, is_awaited: bool = False) -> bool:
        """Take the ask, or return False: the line has ended.

        Where nobody talks, this thread does: it sends the ask, if nobody else waits for an answer; and until one that
        ``is_awaited`` is settled, or the line's own thread has to go on, it listens. What interrupts that, such as
        KeyboardInterrupt, is raised. The ask stays asked for.
        """
        has_turn = False
        try:
            with self._lock:
                if self._stop.is_set():
                    return False
                call = self._call
                is_free = self._talker is None and self._trouble is None
                talks = is_free and (is_awaited or (not self._inbox and self._conversation.is_idle))
                self._inbox.append(ask)
                if call is None or not talks:
                    self._tell()
                    return True
                self._turns += 1
                me = threading.get_ident()
                self._talker, has_turn = me, True
            while self._listen_to_callers() and not ask.future.done():
                self._exchange(call, ask, is_awaited=is_awaited)
                if not is_awaited:
                    break
        except BaseException as problem:
            if has_turn:
                self._trouble = problem
            if not has_turn or not isinstance(problem, Exception):
                raise
        finally:
            if has_turn:  # without a call before it: no interrupt comes in between
                self._talker = None
                try:
                    self._leave()
                except BaseException:  # an interrupt: those who still wait have nobody yet
                    self._leave()
                    raise
        return True

    def hang_up(self) -> None:
        """End; who still waits gets Closed. On return the thread has ended, unless a name look-up holds it."""
        with self._lock:
            self._end()
        self._join()

    def hang_up_if_idle(self) -> bool:
        """End and return True, or return False: somebody waits for an answer."""
        with self._lock:
            if self._inbox or not self._conversation.is_settled:
                return False
            self._end()
        self._join()
        return True

    def drop_after_fork(self) -> None:
        """In a forked child: close the child's copies of the descriptors. The parent's line goes on."""
        if self._call is not None:
            self._call.drop_after_fork()
        self._wake_reader.close()
        self._wake_writer.close()

    def _run(self) -> None:
        end: TallymarkError = Closed("the marker client was closed before the service had answered")
        try:
            self._serve()
        except Exception as fault:
            _events.fault("line.failed", instant=self._instant)
            end = ServiceUnavailable(f"the marker client failed: {fault!r}; its log says more")
        with self._lock:
            self._stop.set()
            self._wake_reader.close()
            self._wake_writer.close()
        self._take_inbox()
        self._conversation.fail_all(end)

    def _serve(self) -> None:
        failures = 0
        refused_since: float | None = None
        while self._await_asks():
            if self._farewell is not None:
                self._conversation.fail_all(self._farewell)
                continue
            try:
                self._call = self._dial()
                failures, refused_since = 0, None
                self._talk(self._call)
            except InvalidRequest as error:
                self._conversation.fail_all(error)
            except Stopped as farewell:
                self._farewell = farewell
            except (OSError, ServiceUnavailable) as problem:
                address = f"{self._address.host}:{self._address.port}"
                _events.info("line.lost", instant=self._instant, address=address, reason=problem)
                self._conversation.lost(str(problem))
                refused_since = self._refused_since(problem, refused_since)
                self._pause(failures)
                failures += 1
            finally:
                self._hang_up_call()

    def _refused_since(self, problem: Exception, since: float | None) -> float | None:
        """When the machine began to say that nobody listens; after long enough, who waits is told."""
        if not isinstance(problem, ConnectionRefusedError):
            return None
        now = time.monotonic()
        if since is None or now - since < REFUSED_S_MAX:
            return now if since is None else since
        self._conversation.fail_all(
            ServiceUnavailable(
                f"nobody listens at {self._address.host}:{self._address.port} for {REFUSED_S_MAX:g} s: the driver, or "
                "the job of this ticket, has ended; if not, check ServiceSettings.advertised_host and port"
            )
        )
        return since

    def _await_asks(self) -> bool:
        """Return True as soon as somebody waits for an answer, False when the line is to end."""
        poll = select.poll()
        poll.register(self._wake_reader, select.POLLIN)
        while self._listen_to_callers():
            if not self._conversation.is_idle:
                return True
            poll.poll()
        return False

    def _dial(self) -> Call:
        left_s = self._conversation.seconds_to_deadline(time.monotonic())
        timeout_s = DIAL_TIMEOUT_S if left_s is None else min(DIAL_TIMEOUT_S, max(left_s, 0.01))
        return dial(self._address, self._instant, timeout_s=timeout_s)

    def _talk(self, call: Call) -> None:
        """Until the line is to end."""
        while self._listen_to_callers():
            if self._conversation.is_idle and not call.is_sending:
                self._rest(call)
            else:
                self._exchange(call)

    def _exchange(self, call: Call, own: AnyAsk | None = None, *, is_awaited: bool = True) -> None:
        """Send what is to be sent, wait until something is to be done, and see to what was answered.

        A caller waits for nothing whose ``own`` ask is settled by now, since it cannot be sent, or is not awaited.
        """
        now = time.monotonic()
        for request in self._conversation.take_requests(now, call.message_bytes):
            call.say(request)
        is_done = own is not None and own.future.done()
        self._hear(call, self._conversation.seconds_to_next(now) if is_awaited and not is_done else 0.0)

    def _hear(self, call: Call, timeout_s: float | None) -> None:
        for answer in call.listen(self._wake_reader, timeout_s):
            self._conversation.receive(answer, time.monotonic())

    def _listen_to_callers(self) -> bool:
        """Take the new asks, fail those whose time is over; return False when the line is to end."""
        if self._inbox or self._is_woken:  # if it is so only now, the wake-up is still there to be read
            self._take_inbox()
        self._conversation.expire(time.monotonic(), self._no_answer)
        return not self._stop.is_set()

    def _take_inbox(self) -> None:
        """With the wake-ups, under the lock under which they are sent: one left behind would end each wait at once."""
        with self._lock:
            if self._is_woken:
                with contextlib.suppress(OSError):  # read whole; closed: the line has ended
                    while len(self._wake_reader.recv(4096)) == 4096:
                        pass
                self._is_woken = False
            for ask in self._inbox:
                self._conversation.add(ask)
            self._inbox = []  # last: who is interrupted before leaves them to the next

    def _rest(self, call: Call) -> None:
        """Leave the turn to callers; return with it when the thread is needed, or something came and nobody had it."""
        with self._lock:
            if self._inbox or self._stop.is_set():
                return
            self._talker = None
            seen = self._turns
        poll = select.poll()
        poll.register(call, select.POLLIN)
        poll.register(self._wake_reader, select.POLLIN)
        poll.poll()
        while not self._takes_turn(seen):
            seen = self._turns
            self._is_needed.wait(ASIDE_S)
        self._see_to_trouble()
        self._hear(call, 0.0)

    def _takes_turn(self, seen: int) -> bool:
        """Have the turn and return True, or stand aside: callers talk, or have talked since so many turns."""
        with self._lock:
            self._is_needed.clear()
            self._is_aside = self._talker is not None or (self._turns != seen and not self._has_work)
            if not self._is_aside:
                self._talker = _THREAD
            return not self._is_aside

    @property
    def _has_work(self) -> bool:
        """Something is left to be done, and nobody has the turn."""
        return bool(
            self._inbox
            or self._trouble is not None
            or self._stop.is_set()
            or not self._conversation.is_idle
            or (self._call is not None and self._call.is_sending)
        )

    def _see_to_trouble(self) -> None:
        """As if it had come over the thread itself."""
        trouble, self._trouble = self._trouble, None
        if isinstance(trouble, Exception):
            raise trouble
        if trouble is not None:
            self._take_inbox()
            self._conversation.begin_anew()
            raise ConnectionAbortedError(f"a caller was interrupted while it talked: {trouble!r}")

    def _leave(self) -> None:
        """After a turn of a caller: the thread goes on where something is left to be done."""
        with self._lock:
            if self._talker is None and self._has_work:
                self._tell()

    def _pause(self, failures: int) -> None:
        """Before the next attempt, but not beyond the first deadline."""
        pause_s = min(PAUSE_S_MIN * 2 ** min(failures, 10), PAUSE_S_MAX) * (0.5 + self._jitter())
        left_s = self._conversation.seconds_to_deadline(time.monotonic())
        self._stop.wait(pause_s if left_s is None else min(pause_s, left_s))

    def _hang_up_call(self) -> None:
        if self._call is not None:
            self._call.hang_up()
            self._call = None

    def _tell(self) -> None:
        """Under the lock: have something done by who has the turn, or by the thread where nobody has it."""
        if self._is_aside and self._talker is None:
            self._is_needed.set()
        elif not self._is_woken or self._trouble is not None:  # a caller may have been interrupted amid reading it
            try:
                self._is_woken = True
                self._wake()
            except BaseException:  # an interrupt: perhaps it was not sent, and a second one does no harm
                self._wake()
                raise

    def _wake(self) -> None:
        with contextlib.suppress(OSError):  # full of wake-ups: it will wake; closed: it has ended
            self._wake_writer.send(b"\0")

    def _end(self) -> None:
        """Under the lock."""
        self._stop.set()
        self._tell()

    def _join(self) -> None:
        """Unless it is waited for by the thread itself, or while the thread waits for this one, which has the turn."""
        if self._thread is not threading.current_thread() and self._talker != threading.get_ident():
            self._thread.join(DIAL_TIMEOUT_S + 1)

    def _no_answer(self, ask: AnyAsk) -> ServiceUnavailable:
        return ServiceUnavailable(
            f"no answer from the marker service at {self._address.host}:{self._address.port} within "
            f"{ask.wait_s:g} s (last: {self._conversation.problem}); check that the driver runs, that no firewall is "
            "in between, and that ServiceSettings.advertised_host is an address which this machine can reach"
        )
