"""Run the tasks of a container beside a connection, or beside the listeners.

A container has no task of its own. Tasks that its nodes start, and the wait for the next deadline, run in the nursery of
``serve`` or of a connection.

Knows tasks; does not know their work.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    import trio

    from .peer_interfaces import ServingContainer

_log = logging.getLogger("trio_amqp10.container")


class TaskRunner:
    """Runs tasks for a container, as long as it is open.

    Args:
        container: the container.

    Attributes:
        working: the number of handlers that run here.
        leases: deliveries sent from here that have no outcome yet.
        nursery: the nursery of the tasks; set before the first of them starts.
        open: whether the container may run its own tasks here too.
    """

    __slots__ = ("__weakref__", "_container", "leases", "nursery", "open", "working")

    def __init__(self, container: ServingContainer) -> None:
        self.working: int = 0
        self.leases: int = 0
        self.nursery: trio.Nursery | None = None
        self.open: bool = False
        self._container = container

    def begin(self, nursery: trio.Nursery) -> None:
        """Run tasks in this nursery from now on."""
        self.nursery = nursery
        self.open = True

    def start_soon(self, function: Callable[..., Awaitable[object]], *args: Any) -> None:
        """Run a handler here; if it fails, that is logged and nothing else ends."""
        assert self.nursery is not None
        self.working += 1
        self.nursery.start_soon(self._run, function, args)

    async def _run(self, function: Callable[..., Awaitable[object]], args: tuple[Any, ...]) -> None:
        try:
            await function(*args)
        except Exception:
            _log.exception("a task of %r failed", self._container)
        finally:
            self.working -= 1
            self._container.check_idle(self)
