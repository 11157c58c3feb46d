"""The answer to a request, yet to come; and the loss of the transport before it.

Knows trio's tasks, and no method.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar, cast

import trio

from trio_amqp10.errors import AmqpError
from trio_amqp10.net.waiters import Waiter
from trio_amqp10.peer.errors import anew as anew_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from trio_amqp10.amqp091.events import Arrival

__all__ = ["Reply", "TransportLostError", "anew"]

E = TypeVar("E", bound=Exception)


def anew(failure: E) -> E:
    """The same exception anew: one object raised in several tasks would gather all their tracebacks."""
    return cast("E", anew_of(cast("AmqpError", failure)))


class TransportLostError(AmqpError):
    """The transport was lost before the answer, and the connection will come back: ask again. Never leaves the client."""


class Reply(Waiter):
    """One answer.

    Args:
        late: called with the answer if the task that waited for it was cancelled.
    """

    __slots__ = ("_abandoned", "_arrival", "_failure", "_late")

    def __init__(self, late: Callable[[Arrival], None] | None = None) -> None:
        super().__init__()
        self._late = late
        self._arrival: Arrival | None = None
        self._failure: Exception | None = None
        self._abandoned = False

    def settle(self, arrival: Arrival) -> None:
        """The answer is there."""
        if self._abandoned:
            if self._late is not None:
                self._late(arrival)
            return
        self._arrival = arrival
        self.wake()

    def fail(self, failure: Exception) -> None:
        """No answer will come."""
        if self._arrival is None and self._failure is None:
            self._failure = failure
            self.wake()

    async def result(self) -> Arrival:
        """Wait for the answer.

        Raises:
            Exception: the reason why there will be none.

        Cancelled: the answer goes to ``late``.
        """
        try:
            await trio.lowlevel.checkpoint_if_cancelled()
            while self._arrival is None and self._failure is None:
                await self.wait()
        except BaseException:
            self._abandoned = True
            if self._arrival is not None and self._late is not None:
                self._late(self._arrival)
            raise
        if self._failure is not None:
            raise anew(self._failure)
        assert self._arrival is not None
        return self._arrival
