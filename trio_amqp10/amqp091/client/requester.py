"""Requests and replies over RabbitMQ's direct reply-to."""

from __future__ import annotations

import itertools
import uuid
from typing import TYPE_CHECKING, Any, Final, Unpack

import trio

from trio_amqp10.core.arguments import check_text
from trio_amqp10.core.errors import AmqpError
from trio_amqp10.net.errors import fresh_copy
from trio_amqp10.net.waiters import Waiter

from .publisher import Publisher

if TYPE_CHECKING:
    from types import TracebackType

    from .connection_base import ConnectionBase
    from .delivery import Delivery
    from .publish_content import PublishProperties

REPLY_TO: Final = "amq.rabbitmq.reply-to"
"""The pseudo-queue whose consumer gets the replies to requests of this channel."""


class ReplyLostError(AmqpError):
    """The connection was lost before the reply: the request may have been served."""


class _Pending(Waiter):
    __slots__ = ("failure", "reply")

    def __init__(self) -> None:
        super().__init__()
        self.reply: Delivery | None = None
        self.failure: Exception | None = None


class _Requests(Publisher):
    """The requester's channel; a loss of the connection fails pending requests."""

    def __init__(self, connection: ConnectionBase[Any]) -> None:
        super().__init__(connection, None, republish=False)
        self.pending: dict[str, _Pending] = {}

    def on_lost(self, failure: Exception | None) -> None:
        super().on_lost(failure)
        if failure is None:
            lost = ReplyLostError(f"the reply was lost: {self.connection.loss}")
            lost.__cause__ = self.connection.loss
            self.fail_all(lost)

    def shut(self, failure: Exception | None) -> None:
        super().shut(failure)
        self.fail_all(failure or trio.ClosedResourceError("the requester is closed"))

    def fail_all(self, failure: Exception) -> None:
        for each in self.pending.values():
            each.failure = failure
            each.wake()


class Requester:
    """Sends requests to an exchange and routing key.

    Made by ``Connection.open_requester``.

    Several tasks may share it.
    """

    def __init__(self, channel: _Requests, routing_key: str, exchange: str) -> None:
        check_text("routing_key", routing_key)
        check_text("exchange", exchange)
        self._channel = channel
        self._routing_key = routing_key
        self._exchange = exchange
        self._prefix = uuid.uuid4().hex
        self._numbers = itertools.count(1)

    async def request(self, body: bytes, **fields: Unpack[PublishProperties]) -> Delivery:
        """Send a request and wait for its reply, which needs no acknowledgement.

        Args:
            body: the octets of the request.
            fields: properties except ``reply_to`` and ``correlation_id``, which are set here. With
                ``expiration`` the server drops a request that would be served too late.

        Raises:
            ReturnedError: the server could route the request to no queue.
            NackedError, PublishInDoubtError: the server refused the request, or the connection was lost before
                its confirm.
            ReplyLostError: the connection was lost before the reply, and will be restored.
            ClosedResourceError: the requester was closed here.
            ChannelClosedError: the server closed the channel.
            ConnectionClosedError: the connection is lost for good.

        Cancelled: the request may be served; its reply is dropped. For a deadline, use a cancel scope around
          the call.
        """
        channel = self._channel
        correlation = f"{self._prefix}-{next(self._numbers)}"
        pending = channel.pending[correlation] = _Pending()
        properties: PublishProperties = {**fields, "reply_to": REPLY_TO, "correlation_id": correlation}
        channel.connection.expect()
        try:
            await channel.publish(self._exchange, self._routing_key, body, mandatory=True, **properties)
            while pending.reply is None and pending.failure is None:
                await pending.wait()
        finally:
            del channel.pending[correlation]
            channel.connection.expect_no_more()
        if pending.reply is not None:
            return pending.reply
        assert pending.failure is not None
        raise fresh_copy(pending.failure)


class RequesterOpening:
    """A requester that is not opened yet: enter it with ``async with``.

    Leaving ends all requests.

    Cancelled on entering: its channel is closed again.
    """

    def __init__(self, connection: ConnectionBase[Any], routing_key: str, exchange: str) -> None:
        self._channel = _Requests(connection)
        self._requester = Requester(self._channel, routing_key, exchange)

    async def __aenter__(self) -> Requester:
        channel = self._channel
        try:
            await channel.open()
            consuming = channel.queue(REPLY_TO).consume(no_ack=True, prefetch=None)
            consumer = await consuming.__aenter__()
        except BaseException:
            await channel.aclose()
            raise
        consumer.on_delivery = self._take
        return self._requester

    def _take(self, reply: Delivery) -> None:
        pending = self._channel.pending.get(reply.properties.correlation_id or "")
        if pending is not None:
            pending.reply = reply
            pending.wake()

    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        await self._channel.aclose()
