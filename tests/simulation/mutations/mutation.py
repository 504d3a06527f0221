"""One fault, made on purpose: what it switches off, what should break by that, and how it is put into the library."""

import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar
from unittest import mock

Fault = Callable[[], AbstractContextManager[Any]]
World = Literal["tables", "markers"]
Wrong = TypeVar("Wrong", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutation:
    """The library is mutated while ``fault()`` is entered, in this process."""

    name: str
    """What the library does instead of what it should."""
    breaks: str
    """How that goes wrong, in a sentence."""
    fault: Fault
    world: World
    where: tuple[Callable[[Any], bool], ...]
    """What must hold of a plan for the mutation to show at all (``where``)."""
    by: tuple[str, ...]
    """The checks that are to say no, where others would only notice that a file is not there."""


@dataclass(frozen=True, slots=True)
class Group:
    """The mutations of one part of the protocol, each declared by a decorator of its wrong function.

    The docstring of the function is the name of the mutation and how it goes wrong: ``NAME. So BREAKS.``
    """

    title: str
    world: World = "tables"
    """Which plans are played: whole jobs, or servers of markers by themselves."""
    mutations: list[Mutation] = field(default_factory=list)

    def function(self, right: Callable[..., Any], *where: Any, by: tuple[str, ...] = ()) -> Callable[[Wrong], Wrong]:
        """Declare what is called instead of the function ``right``."""
        return self._declared(lambda wrong: replaced(right, wrong), where, by)

    def member(self, owner: Any, name: str, *where: Any, by: tuple[str, ...] = ()) -> Callable[[Wrong], Wrong]:
        """Declare what a class has instead of its method, or a module instead of what it imports."""
        return self._declared(lambda wrong: member(owner, name, wrong), where, by)

    def fault(self, *where: Any, by: tuple[str, ...] = ()) -> Callable[[Fault], Fault]:
        """Declare a function whose result is entered."""
        return self._declared(lambda fault: fault(), where, by)

    def _declared(self, enter: Callable[[Any], Any], where: Any, by: tuple[str, ...]) -> Callable[[Any], Any]:
        def declare(wrong: Any) -> Any:
            name, breaks = " ".join(wrong.__doc__.split()).removesuffix(".").split(". So ")
            self.mutations.append(
                Mutation(
                    name=name[0].lower() + name[1:],
                    breaks=breaks,
                    fault=lambda: enter(wrong),
                    world=self.world,
                    where=where,
                    by=by,
                )
            )
            return wrong

        return declare


def replaced(function: Callable[..., Any], wrong: Callable[..., Any]) -> AbstractContextManager[Any]:
    """Replace ``function`` by ``wrong`` wherever a module has imported it, but for those of the mutations.

    Raises:
        AttributeError: no module has it under its own name any more.
    """
    name = function.__name__
    holders = [
        module
        for module_name, module in sorted(sys.modules.items())
        if module_name.startswith(("tallymark.", "tests.simulation.")) and not module_name.startswith(__package__)
        if vars(module).get(name) is function
    ]
    if not holders:
        raise AttributeError(f"no module holds {function.__module__}.{name}")
    return _all([mock.patch.object(holder, name, wrong) for holder in holders])


def member(owner: Any, name: str, wrong: Any) -> AbstractContextManager[Any]:
    """Replace what a class or module has under a name by ``wrong``. Raises AttributeError where it has nothing."""
    if name not in vars(owner):
        raise AttributeError(f"{owner.__name__} has no {name}")
    return mock.patch.object(owner, name, wrong)


def both(*faults: AbstractContextManager[Any]) -> AbstractContextManager[Any]:
    return _all(list(faults))


def _all(faults: list[AbstractContextManager[Any]]) -> AbstractContextManager[Any]:
    with ExitStack() as entered:  # leaves none of them behind if one cannot be entered
        for fault in faults:
            entered.enter_context(fault)
        return entered.pop_all()


async def nothing(*_: object, **__: object) -> None:
    """Instead of whatever should be done."""


class Without:
    """Storage that leaves out the calls of one verb on paths that begin alike, and says that it has done them."""

    def __init__(self, backend: Any, verb: str, beginning: str) -> None:
        self._backend = backend
        self._verb = verb
        self._beginning = beginning

    def __getattr__(self, name: str) -> Any:
        known = getattr(self._backend, name)
        if name != self._verb:
            return known

        async def call(path: str, *arguments: Any) -> Any:
            return None if path.startswith(self._beginning) else await known(path, *arguments)

        return call
