"""A consumer: an iterator over the deliveries of a queue (0-9-1, basic.consume).

The prefetch limits how many deliveries the server sends ahead. It has no effect on a consumer with ``no_ack``,
or with the prefetch None; the buffer of such a consumer has a limit of its own, above which the connection
reads nothing. See ``connection_base``.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any, Final, Generic, Self, TypeVar

import trio

from trio_amqp10.amqp091 import spec
from trio_amqp10.core.arguments import check_count
from trio_amqp10.net.errors import TimedOutError, fresh_copy, time_limit
from trio_amqp10.net.waiters import Waiter

from .delivery import Delivery, DeliveryBase
from .errors import ConsumerCancelledError

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from trio_amqp10.amqp091.wire.methods import Method

    from .channel_base import ChannelBase
    from .queues import QueueBase

D = TypeVar("D", bound=DeliveryBase)

_OCTETS: Final = 1024 * 1024
"""Octets that may wait in a consumer without a prefetch."""


class ConsumerBase(Waiter, Generic[D]):
    """A consumer, with the parts that both versions share.

    The iteration ends without an error after this consumer was closed here. Several tasks may share one
    consumer.

    Attributes:
        tag: its name on the channel.
        queue: the queue that it consumes.
        no_ack: whether the server forgets each message when it sends it.
        prefetch: unsettled deliveries that the server may have under way; None for no limit.
        on_delivery: a function that is called with each delivery as it comes, instead of iterating; None to
            iterate.
    """

    __slots__ = (
        "_buffer",
        "_cancelled",
        "_channel",
        "_closed",
        "_failure",
        "_octets",
        "exclusive",
        "no_ack",
        "on_delivery",
        "prefetch",
        "queue",
        "tag",
    )

    def __init__(
        self,
        channel: ChannelBase[D],
        queue: QueueBase[D],
        tag: str,
        *,
        no_ack: bool,
        exclusive: bool,
        prefetch: int | None,
    ) -> None:
        super().__init__()
        self._channel = channel
        self._buffer: deque[D] = deque()
        self._octets = 0
        self._closed = False
        self._cancelled = False
        self._failure: Exception | None = None
        self.on_delivery: Callable[[D], None] | None = None
        self.queue: QueueBase[D] = queue
        self.tag: str = tag
        self.no_ack: bool = no_ack
        self.exclusive: Final = exclusive
        self.prefetch: int | None = prefetch

    @property
    def buffered(self) -> int:
        """The number of deliveries that came and were not received yet."""
        return len(self._buffer)

    @property
    def closing(self) -> bool:
        """Whether the program has closed the consumer."""
        return self._closed

    def request(self) -> Method:
        """Return the request that starts the deliveries."""
        raise NotImplementedError

    # -- what the channel reports -----------------------------------------------------------

    def take(self, delivery: D) -> None:
        """Take a delivery."""
        if self.on_delivery is not None:
            self.on_delivery(delivery)
            return
        self._buffer.append(delivery)
        if self.no_ack or self.prefetch is None:
            self._octets += len(delivery.body)
            if self._is_full():
                self._channel.connection.brake(self)
        if self._parked is not None:
            self.wake()

    def on_cancelled(self) -> None:
        """React to a basic.cancel of the server."""
        self._cancelled = True
        self.fail(ConsumerCancelledError(self.tag, self.queue.name))

    def on_lost(self) -> None:
        """Drop deliveries that the server will deliver again after the reconnect."""
        if not self.no_ack:
            self._buffer.clear()
            self._octets = 0
        self._channel.connection.release(self)

    def fail(self, failure: Exception) -> None:
        """Note that no more deliveries will come; those in the buffer can be received."""
        if self._failure is None:
            self._failure = failure
        self.wake()

    # -- what a program calls ---------------------------------------------------------------

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> D:
        """Return the next delivery; errors and cancellation as ``receive``.

        After the consumer was closed here, the iteration ends instead of raising.
        """
        if self._buffer:
            await self._channel.pace.checkpoint()
            if self._buffer:
                return self._pop()
        try:
            return await self.receive()
        except trio.ClosedResourceError:
            raise StopAsyncIteration from None

    async def receive(self, *, timeout: float | None = None) -> D:  # noqa: ASYNC109
        """Wait for the next delivery and return it.

        Args:
            timeout: seconds to wait at most; None for any time.

        Raises:
            trio_amqp10.TimedOutError: no delivery came within ``timeout``; none is lost. It is a ``trio.TooSlowError``.
            ConsumerCancelledError: the server cancelled the consumer, for example because the queue was
                deleted.
            ChannelClosedError: the server closed the channel.
            ConnectionClosedError: the connection is closed or lost, and will not be restored.
            trio.ClosedResourceError: the consumer was closed here.

        Cancelled: no delivery is lost; the next call returns it.
        """
        if timeout is not None:
            with time_limit(timeout, lambda: self._no_message(timeout)):
                return await self.receive()
        if self._buffer:
            await self._channel.pace.checkpoint()
        while not self._buffer:
            await self._more()
        return self._pop()

    async def receive_many(self, maximum: int = 100) -> list[D]:
        """Wait for at least one delivery; return up to ``maximum`` that are there.

        Errors and cancellation as ``receive``.
        """
        check_count("maximum", maximum)
        found = [await self.receive()]
        while self._buffer and len(found) < maximum:
            found.append(self._pop())
        return found

    async def aclose(self) -> None:
        """Cancel the consumer and put back deliveries that were not received.

        This is basic.cancel of 0-9-1; the call waits for the server's answer. With ``no_ack`` deliveries that
        were not received are lost, because the server has forgotten them. Deliveries that were received can
        still be settled.

        Cancelled: the cancel is sent, and the server's answer is not awaited.
        """
        if self._closed:
            await trio.lowlevel.checkpoint()
            return
        self._closed = True
        channel = self._channel
        channel.connection.release(self)
        channel.forget_consumer(self)
        self.wake()
        try:
            if not self._cancelled and self._failure is None:
                await channel.cancel(self)
            else:
                await trio.lowlevel.checkpoint()
        finally:
            channel.drop_consumer(self)
            self.put_back()

    def put_back(self) -> None:
        """Return the deliveries that were not received to the queue."""
        unread, self._buffer = self._buffer, deque()
        self._octets = 0
        if not self.no_ack:
            for delivery in unread:
                self._channel.put_back(delivery)

    def _no_message(self, seconds: float) -> TimedOutError:
        return TimedOutError(f"no message from {self.queue.name!r} within {seconds:g} s")

    async def _more(self) -> None:
        if self._closed:
            raise trio.ClosedResourceError(
                f"the consumer of {self.queue.name!r} ({self.tag}) was closed here"
            )
        if self._failure is not None:
            await trio.lowlevel.checkpoint()
            if not isinstance(self._failure, ConsumerCancelledError):
                self._channel.note_raised()
            raise fresh_copy(self._failure)
        await self.wait()
        self._channel.pace.blocked()

    def _pop(self) -> D:
        delivery = self._buffer.popleft()
        if self._octets:
            self._octets -= len(delivery.body)
        if self._channel.connection.braked and not self._is_full():
            self._channel.connection.release(self)
        return delivery

    def _is_full(self) -> bool:
        """Whether the buffer has reached its limit, if no prefetch limits the server."""
        if self.prefetch is None:
            return self._octets >= _OCTETS
        return self.no_ack and len(self._buffer) >= self.prefetch

    def __repr__(self) -> str:
        return f"<Consumer {self.tag!r} of {self.queue.name!r}, {len(self._buffer)} waiting>"


class Consumer(ConsumerBase[Delivery]):
    """An iterator over deliveries: ``async for delivery in consumer``.

    The iteration ends without an error after this consumer was closed here. Several tasks may share one
    consumer.

    Attributes:
        tag: its name on the channel.
        queue: the queue that it consumes.
        no_ack: whether the server forgets each message when it sends it.
        prefetch: unsettled deliveries that the server may have under way; None for no limit.
        on_delivery: a function that is called with each delivery as it comes, instead of iterating; None to
            iterate.
    """

    __slots__ = ("arguments",)

    def __init__(self, *args: Any, arguments: dict[str, Any], **options: Any) -> None:
        super().__init__(*args, **options)
        self.arguments: Final = arguments

    def request(self) -> spec.BasicConsume:
        """Return the basic.consume of this consumer."""
        return spec.BasicConsume(
            queue=self.queue.name,
            consumer_tag=self.tag,
            no_ack=self.no_ack,
            exclusive=self.exclusive,
            arguments=self.arguments,
        )


C = TypeVar("C", bound=ConsumerBase[Any])


class ConsumerOpening(Generic[C]):
    """A consumer that is not started yet: enter it with ``async with``.

    Entering raises the server's refusal: ``NotFoundError``, ``AccessRefusedError`` (also if another consumer is
    exclusive). Leaving closes the consumer, see ``Consumer.aclose``. An exception raised in the block
    propagates unchanged.

    Cancelled on entering: the consumer is cancelled again.
    """

    __slots__ = ("_channel", "_consumer")

    def __init__(self, channel: ChannelBase[Any], consumer: C) -> None:
        self._channel = channel
        self._consumer = consumer

    async def __aenter__(self) -> C:
        await self._channel.start_consumer(self._consumer)
        return self._consumer

    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        await self._consumer.aclose()


class Consuming(ConsumerOpening[Consumer]):
    """A consumer of 0-9-1 that is not started yet."""

    __slots__ = ()
