"""Storage whose puts cannot be called back: who stops waiting does not stop what was sent."""

from collections.abc import Awaitable, Callable
from typing import Any

import anyio
from anyio.abc import TaskGroup

from tallymark.backends.contract import Backend
from tallymark.backends.errors import BackendError
from tests.support.wrapped import WrappedBackend


class PostedBackend(WrappedBackend):
    """Puts are carried by tasks of the network's own, and land ``delay_s(path)`` after they were sent.

    As with a worker thread or a connection, cancelling the caller leaves them on their way.
    """

    def __init__(self, inner: Backend, network: TaskGroup, delay_s: Callable[[str], float]) -> None:
        super().__init__(inner)
        self._network = network
        self._delay_s = delay_s

    async def _through(self, verb: str, paths: tuple[str, ...], do: Callable[[], Awaitable[Any]]) -> Any:
        if verb not in ("put", "put_new"):
            return await do()
        answered = anyio.Event()
        errors: list[BackendError] = []

        async def carry() -> None:
            await anyio.sleep(self._delay_s(paths[0]))
            try:
                await do()
            except BackendError as error:
                errors.append(error)
            answered.set()

        self._network.start_soon(carry)
        await answered.wait()
        if errors:
            raise errors[0]
        return None
