"""A node that calls a function of the user for each peer that receives from it.

The function is cancelled when its link is gone, because there is nothing else for it to work on.

Knows outlets; knows no links.
"""

from __future__ import annotations

import logging
from contextlib import suppress
from typing import TYPE_CHECKING, Any, cast

import trio

from trio_amqp10.errors import AmqpError, Condition, MessageSizeError

from .node import Node, Outlet

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

__all__ = ["ProducerNode"]

_log = logging.getLogger("trio_amqp10.container")


class ProducerNode(Node):
    """Runs ``handler(link)`` for every peer that wants to receive.

    Returning closes the link once all that was sent is settled; what the handler raises detaches
    it at once, with ``amqp:internal-error``, or ``amqp:link:message-size-exceeded`` for a ``MessageSizeError``. The handler is cancelled when its link is gone.

    Args:
        address: what links name to reach it.
        handler: an async function of the link, a ``Sender``.
    """

    accepts_receivers = True

    def __init__(self, address: str, handler: Callable[[Any], Awaitable[object]]) -> None:
        super().__init__(address)
        self._handler = handler
        self._scopes: dict[Outlet, trio.CancelScope] = {}

    def add_outlet(self, outlet: Outlet) -> None:
        super().add_outlet(outlet)
        if outlet.sender is None:
            outlet.close(
                Condition.NOT_IMPLEMENTED.value, f"{self.address!r} gives to peers of AMQP 1.0 alone"
            )
            return
        self._scopes[outlet] = trio.CancelScope()
        outlet.peer.start_soon(self._produce, outlet, self._scopes[outlet])

    def on_demand(self, outlet: Outlet) -> None:
        outlet.rest(0)

    def remove_outlet(self, outlet: Outlet) -> None:
        super().remove_outlet(outlet)
        scope = self._scopes.pop(outlet, None)
        if scope is not None:
            scope.cancel()

    async def _produce(self, outlet: Outlet, scope: trio.CancelScope) -> None:
        with scope:
            try:
                await self._handler(outlet.sender)
            except MessageSizeError as too_large:
                outlet.close(Condition.MESSAGE_SIZE_EXCEEDED.value, str(too_large))
                return
            except Exception as failure:
                if outlet.closed and _is_loss(failure):
                    _log.debug("%r: %s", self, failure)
                    return
                _log.exception("%r: the handler failed", self)
                outlet.close(Condition.INTERNAL_ERROR.value, "the producer failed")
                return
            with suppress(AmqpError, trio.ClosedResourceError):
                await outlet.flush()
                self._scopes.pop(outlet, None)  # from here on, that the link goes is no reason to cancel
                await outlet.aclose()


def _is_loss(failure: BaseException) -> bool:
    """Whether this is what every use of a lost link raises."""
    if isinstance(failure, BaseExceptionGroup):
        group = cast("BaseExceptionGroup[BaseException]", failure)
        return all(_is_loss(one) for one in group.exceptions)
    return isinstance(failure, (trio.BrokenResourceError, trio.ClosedResourceError))
