"""Examine a store: every promise in turn, within a bound, and nothing left behind."""

from collections.abc import Callable

import anyio

from tallymark.backends.checks import Broken, InThread, in_thread
from tallymark.backends.contract import Backend
from tallymark.backends.doctor.diagnosis import Diagnosis, Finding, Latency
from tallymark.backends.doctor.file_system import LocalFileSystem
from tallymark.backends.doctor.large import keeps_a_huge_file
from tallymark.backends.doctor.latency import clock_skew_s, latencies
from tallymark.backends.doctor.probes import Probe, probes
from tallymark.backends.doctor.traces import TracedBackend
from tallymark.backends.errors import BackendError

PROBING_S = 21.0
"""Default time for all probes but the large file. With the removal, and that of the directory (``practice``), it
ends within half a minute."""

REMOVAL_S_MAX = 7.0
"""Time to remove what was put."""

SKEW_S_MAX = 60.0
"""A larger clock difference is worth a remark. Nothing here depends on it, but S3 refuses requests 15 minutes off."""

SLOW_PUT_S = 1.0
"""A mean put slower than this is worth a remark."""


class Examination:
    """One run. All objects below its backend's root are the doctor's."""

    def __init__(
        self,
        backend: Backend,
        *,
        now: Callable[[], float],
        ground: LocalFileSystem | None = None,
        is_large: bool = False,
        probing_s: float = PROBING_S,
        report: Callable[[str], object] = lambda _: None,
        in_thread: InThread[None] = in_thread,
    ) -> None:
        """``now`` is this machine's clock, in seconds since the epoch; ``probing_s`` is the time for all probes but the
        large file; ``report`` gets the name of the next step; ``in_thread`` makes blocking calls.
        """
        self._backend = TracedBackend(backend, in_thread=in_thread)
        self._now = now
        self._ground = ground
        self._is_large = is_large
        self._probing_s = probing_s
        self._report = report
        self._findings: list[Finding] = []
        self._latencies: list[Latency] = []
        self._skew_s: float | None = None
        self.left: tuple[str, ...] = ()
        """What could not be removed, also where the examination was interrupted."""

    async def run(self) -> Diagnosis:
        """Try every promise, and remove every object, also when interrupted. An error of storage is a finding."""
        started = anyio.current_time()
        try:
            await self._probe_all(until=started + self._probing_s)
            if self._is_large and self._is_sound():
                self._findings.append(await self._tried(Probe("keeps a file of 5 GB", keeps_a_huge_file), until=None))
        finally:
            await self._remove()
        return Diagnosis(
            url=self._backend.url,
            findings=tuple(self._findings),
            latencies=tuple(self._latencies),
            clock_skew_s=self._skew_s,
            ground=self._ground,
            remarks=tuple(self._remarks()),
            left=self.left,
            seconds=anyio.current_time() - started,
        )

    async def _probe_all(self, *, until: float) -> None:
        first, *others = probes(has_staging=self._backend.has_staging)
        self._findings.append(await self._tried(first, until=until))
        if not self._is_sound():  # the other probes would all fail, too
            self._findings += [Finding(probe.promise, "untried", "since the first was broken") for probe in others]
            return
        self._report("measuring latency")
        await self._measure(until=until)
        for probe in others:
            self._findings.append(await self._tried(probe, until=until))

    async def _measure(self, *, until: float) -> None:
        with anyio.CancelScope(deadline=until):
            try:
                self._skew_s = await clock_skew_s(self._backend, self._now)
                self._latencies += await latencies(self._backend)
            except BackendError:
                return  # the probes report it

    async def _tried(self, probe: Probe, *, until: float | None) -> Finding:
        self._report(probe.promise)
        if until is not None and anyio.current_time() >= until:
            return self._no_time(probe)
        with anyio.CancelScope(deadline=float("inf") if until is None else until):
            try:
                return Finding(probe.promise, "kept", await probe.run(self._backend))
            except (Broken, BackendError) as error:
                return Finding(probe.promise, "broken", str(error))
        return self._no_time(probe)

    def _no_time(self, probe: Probe) -> Finding:
        detail = f"no time: all probes have {self._probing_s:g} s together; a slow store needs more (--seconds)"
        return Finding(probe.promise, "untried", detail)

    async def _remove(self) -> None:
        self._report("removing what was put")
        with anyio.CancelScope(deadline=anyio.current_time() + REMOVAL_S_MAX, shield=True) as scope:
            self.left = tuple(await self._backend.remove())
        if scope.cancelled_caught:
            self.left = (f"objects below {self._backend.url} (no time to list them)",)

    def _is_sound(self) -> bool:
        return all(finding.result == "kept" for finding in self._findings)

    def _remarks(self) -> list[str]:
        remarks = self._ground.remarks if self._ground is not None else []
        if self._skew_s is not None and abs(self._skew_s) > SKEW_S_MAX:
            remarks.append(
                f"the store's clock and this machine's are {abs(self._skew_s):,.0f} s apart; set one of them"
            )
        put_s = next((found.mean_s for found in self._latencies if found.verb == "put_new"), 0.0)
        if put_s > SLOW_PUT_S:
            remarks.append(f"a put takes {put_s:.1f} s: run jobs nearer to the store")
        return remarks
