"""A node that calls a user's function for each peer that receives from it.

The function is cancelled when its link ends, because it works for that link only.

Knows outlets; knows no links.
"""

from __future__ import annotations

import logging
from contextlib import suppress
from typing import TYPE_CHECKING, Any, cast

import trio

from trio_amqp10.core.errors import AmqpError, Condition, MessageSizeError

from .node import Node, Outlet

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

_log = logging.getLogger("trio_amqp10.container")


class ProducerNode(Node):
    """Runs ``handler(link)`` for every peer that wants to receive.

    When the handler returns, the link is closed once all that was sent is settled. If it raises, the link is detached at once,
    with ``amqp:internal-error``, or ``amqp:link:message-size-exceeded`` for a ``MessageSizeError``. The handler is cancelled when
    its link ends.

    Args:
        address: the address that links name.
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
            outlet.close(Condition.NOT_IMPLEMENTED.value, f"{self.address!r} sends to peers of AMQP 1.0 only")
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
                self._scopes.pop(
                    outlet, None
                )  # The handler is done, so the end of the link must not cancel this.
                await outlet.aclose()


def _is_loss(failure: BaseException) -> bool:
    """Whether this is the exception of any use of a lost link."""
    if isinstance(failure, BaseExceptionGroup):
        group = cast("BaseExceptionGroup[BaseException]", failure)
        return all(_is_loss(one) for one in group.exceptions)
    return isinstance(failure, (trio.BrokenResourceError, trio.ClosedResourceError))
