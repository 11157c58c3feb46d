"""A reply: the future answer to a request, or the loss of the transport before it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio

from trio_amqp10.core.errors import AmqpError
from trio_amqp10.net.errors import fresh_copy
from trio_amqp10.net.waiters import Waiter

if TYPE_CHECKING:
    from collections.abc import Callable

    from trio_amqp10.amqp091.engine.events import Arrival


class TransportLostError(AmqpError):
    """The transport was lost before the answer, and the connection will be restored.

    The caller must send the request again. Never leaves the client.
    """


class Reply(Waiter):
    """One answer, for one task to wait for.

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
        """Set the answer."""
        if self._abandoned:
            if self._late is not None:
                self._late(arrival)
            return
        self._arrival = arrival
        self.wake()

    def fail(self, failure: Exception) -> None:
        """Set the reason why no answer will come."""
        if self._arrival is None and self._failure is None:
            self._failure = failure
            self.wake()

    async def result(self) -> Arrival:
        """Wait for the answer.

        Raises:
            Exception: the reason why no answer will come.

        Cancelled: the answer is passed to ``late``.
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
            raise fresh_copy(self._failure)
        assert self._arrival is not None
        return self._arrival
