"""Where tasks of a container run: beside a connection, or beside the listeners.

A container has no task of its own. What its nodes start by themselves, and the wait for the next deadline,
run beside ``serve`` or beside a connection.

Knows tasks; does not know what they do.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    import trio

__all__ = ["Idling", "TaskRunner"]

_log = logging.getLogger("trio_amqp10.container")


class Idling(Protocol):
    """The container, as far as its tasks need it."""

    def check_idle(self, runner: TaskRunner) -> None:
        """A task has ended here."""
        ...


class TaskRunner:
    """Runs tasks for a container, as long as it is open.

    Args:
        container: the container.

    Attributes:
        working: handlers that run here.
        leases: deliveries that went out from here and have no outcome yet.
        nursery: where they run; there before the first of them is started.
        open: whether it lasts, so that the container may run its own tasks here too.
    """

    __slots__ = ("__weakref__", "_idling", "leases", "nursery", "open", "working")

    def __init__(self, container: Idling) -> None:
        self.working: int = 0
        self.leases: int = 0
        self.nursery: trio.Nursery | None = None
        self.open: bool = False
        self._idling = container

    def begin(self, nursery: trio.Nursery) -> None:
        """Tasks run here from now on."""
        self.nursery = nursery
        self.open = True

    def start_soon(self, function: Callable[..., Awaitable[object]], *args: Any) -> None:
        """Run a handler here; one that fails is logged and takes nothing else with it."""
        assert self.nursery is not None
        self.working += 1
        self.nursery.start_soon(self._run, function, args)

    async def _run(self, function: Callable[..., Awaitable[object]], args: tuple[Any, ...]) -> None:
        try:
            await function(*args)
        except Exception:
            _log.exception("a task of %r failed", self._idling)
        finally:
            self.working -= 1
            self._idling.check_idle(self)
