"""Actions on a table: each states what it would do unless it is sent with ``"dry_run": false``.

A feature that maintains tables adds its row to ``ACTIONS``. With an ``Idempotency-Key`` a request that is repeated gets
the answer of the first one; answers are kept for as long as this process runs.
"""

from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Annotated, Any, TypedDict, TypeVar

import anyio
from anyio.abc import TaskGroup
from msgspec import Meta, Struct

from tallymark.engine.documents.checkpoint import CheckpointDocument, put_checkpoint
from tallymark.engine.documents.clean import CleanDocument, clean_table
from tallymark.engine.documents.rollback import RollbackDocument, end_instants
from tallymark.engine.errors import InvalidRequest
from tallymark.engine.serve.audit import audited
from tallymark.engine.serve.rest.calls import Call, Handler, Operation
from tallymark.engine.serve.rest.operations import TABLE
from tallymark.engine.serve.tokens import Role

T = TypeVar("T")

KEYS_MAX = 10_000
"""Idempotency keys whose answers are kept; the oldest is forgotten first. An answer takes some kilobytes."""


class ActionBody(Struct, forbid_unknown_fields=True, kw_only=True):
    dry_run: bool = True


class RollbackBody(ActionBody):
    instant: Annotated[str, Meta(pattern=r"^\d{17}$")] | None = None
    """Ends this one, even if its writer is alive; by default those of dead writers."""


class CleanBody(ActionBody):
    retain_hours: Annotated[float, Meta(ge=0)] | None = None
    """Keeps replaced files for so many hours, this once; by default as the table was made."""


class PlannedCheckpointDocument(TypedDict):
    url: str
    position: int
    """Position of the log from which readers of the checkpoint would start."""
    files: int
    partitions: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Action:
    """``plan`` returns the document of a dry run, ``run`` that of the action itself."""

    name: str
    summary: str
    body: type[ActionBody]
    plan: Handler
    run: Handler
    answer: Any
    role: Role = Role.OPERATE

    @property
    def operation(self) -> Operation:
        return Operation(
            method="POST",
            path=f"{TABLE}/actions/{self.name}",
            summary=self.summary,
            role=self.role,
            body=self.body,
            answer=self.answer,
            handler=self._act,
        )

    async def _act(self, call: Call) -> Any:
        body: ActionBody = call.body
        if body.dry_run:
            return await self.plan(call)
        token, outcome = call.access.token, "unknown"
        try:
            found = await self.run(call)
            outcome = "done"
        except BaseException as error:
            outcome = type(error).__name__
            raise
        else:
            return found
        finally:
            call.lake.changed(call.table)
            audited(
                self.name,
                client=call.access.client,
                token=None if token is None else token.id,
                table=call.table.place,
                instant=getattr(body, "instant", None) or "",
                outcome=outcome,
            )


async def _rollback(call: Call) -> RollbackDocument:
    return await end_instants(call.table.fresh(), call.body.instant, dry_run=call.body.dry_run)


async def _clean(call: Call) -> CleanDocument:
    return await clean_table(call.table.fresh(), retain_hours=call.body.retain_hours, dry_run=call.body.dry_run)


async def _plan_checkpoint(call: Call) -> PlannedCheckpointDocument:
    sizes = await call.table.read(lambda table: table.files())
    return {
        "url": call.table.url,
        "position": sizes.position,
        "files": sizes.files,
        "partitions": len(sizes.partitions),
    }


async def _checkpoint(call: Call) -> CheckpointDocument:
    return await put_checkpoint(call.table.fresh())


ACTIONS: tuple[Action, ...] = (
    Action(
        name="rollback",
        summary="Ends instants of dead writers, or a named one, as `tallymark rollback`.",
        body=RollbackBody,
        plan=_rollback,
        run=_rollback,
        answer=RollbackDocument,
    ),
    Action(
        name="clean",
        summary="Ends instants of dead writers and deletes expired files, as `tallymark clean`.",
        body=CleanBody,
        plan=_clean,
        run=_clean,
        answer=CleanDocument,
    ),
    Action(
        name="checkpoint",
        summary="Writes a checkpoint, from which the log is read on, as `tallymark checkpoint`.",
        body=ActionBody,
        plan=_plan_checkpoint,
        run=_checkpoint,
        answer=CheckpointDocument | PlannedCheckpointDocument,
    ),
)


@dataclass(slots=True)
class _Run:
    request: object
    ended: anyio.Event
    answer: Any = None
    error: Exception | None = None


class Repeats:
    """Answers by idempotency key. Actions run to their end in ``tasks``, also when their client disconnects."""

    def __init__(self, tasks: TaskGroup) -> None:
        self._tasks = tasks
        self._known: OrderedDict[tuple[str, str], _Run] = OrderedDict()

    async def run(self, client: str, key: str | None, request: object, act: Callable[[], Awaitable[T]]) -> T:
        """Return the answer; of an earlier request with this key of the client, if there was one. Errors are not kept.

        Raises InvalidRequest: the earlier one was another request.
        """
        run = None if key is None else self._known.get((client, key))
        if run is None:
            run = _Run(request, anyio.Event())
            if key is not None:
                self._known[client, key] = run
                if len(self._known) > KEYS_MAX:
                    self._known.popitem(last=False)
            self._tasks.start_soon(self._finish, run, (client, key or ""), act)
        elif run.request != request:
            raise InvalidRequest(f"Idempotency-Key {key!r} was used for another request: take a new one")
        await run.ended.wait()
        if run.error is not None:
            raise run.error
        answer: T = run.answer
        return answer

    async def _finish(self, run: _Run, name: tuple[str, str], act: Callable[[], Awaitable[object]]) -> None:
        try:
            run.answer = await act()
        except Exception as error:  # raised by each request that waits
            run.error = error
        finally:
            if run.answer is None and self._known.get(name) is run:
                del self._known[name]
            run.ended.set()
