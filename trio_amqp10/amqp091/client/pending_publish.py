"""One publish with a confirm: its outcome, and its errors (0-9-1, basic.publish)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, TypeAlias

import trio

from trio_amqp10.amqp091.wire.content import write_header
from trio_amqp10.amqp091.wire.fields import USUAL
from trio_amqp10.core.errors import AmqpError, LocalProtocolError
from trio_amqp10.net.errors import fresh_copy
from trio_amqp10.net.waiters import Waiter

from .errors import printable

if TYPE_CHECKING:
    from trio_amqp10.amqp091.wire.content import BasicProperties, Content

    from .errors import ReturnedMessage
    from .publisher import Publisher

Outcome: TypeAlias = Literal["waiting", "confirmed", "refused", "returned", "in doubt"]


class Ticket:
    """One publish of a publisher, and its outcome.

    Attributes:
        exchange: its exchange.
        routing_key: its routing key.
        mandatory: whether the server returns it if it routes it to no queue.
        content: properties and body.
        returned: the returned message, if there is one.
        state: ``"waiting"``, then finally ``"confirmed"``, ``"refused"``, ``"returned"`` or ``"in doubt"``.
        failure: the exception that ``outcome`` raises; None while it waits, and once it is confirmed.
    """

    __slots__ = (
        "_publisher",
        "_seen",
        "_waiter",
        "content",
        "exchange",
        "failure",
        "mandatory",
        "returned",
        "routing_key",
        "state",
    )

    def __init__(
        self, publisher: Publisher, exchange: str, routing_key: str, mandatory: bool, content: Content
    ) -> None:
        self._publisher = publisher
        self.exchange: Final = exchange
        self.routing_key: str = routing_key
        self.mandatory: Final = mandatory
        self.content: Final = content
        self._seen = False
        self._waiter: Waiter | None = None
        self.returned: ReturnedMessage | None = None
        self.state: Outcome = "waiting"
        self.failure: Exception | None = None

    @property
    def properties(self) -> BasicProperties:
        """The properties of the message."""
        properties: BasicProperties = self.content.properties
        return properties

    @property
    def body(self) -> bytes:
        """The octets of the message."""
        return self.content.body

    @property
    def place(self) -> str:
        """Exchange and routing key, for error messages."""
        return f"exchange {self.exchange!r} with routing key {self.routing_key!r}"

    async def outcome(self) -> None:
        """Wait until the server has confirmed the message.

        Raises:
            NackedError: the server refused it.
            ReturnedError: it was mandatory, and the server could route it to no queue.
            PublishInDoubtError: the channel or the connection was lost before the confirm.
            ChannelClosedError: the server closed the channel because of this publish, for example as the
                exchange does not exist.
            LocalProtocolError: it was to be sent again after a reconnect, and its properties are larger than the
                new frame-max.

        Cancelled: the publish goes on; this may be called again.
        """
        self._seen = True
        self._publisher.see(self)
        if self.state != "waiting":
            await trio.lowlevel.checkpoint()
        else:
            connection = self._publisher.connection
            connection.expect()
            try:
                if self._waiter is None:
                    self._waiter = Waiter()
                while self.state == "waiting":
                    await self._waiter.wait()
            finally:
                connection.expect_no_more()
            self._publisher.pace.blocked()
        if self.failure is not None:
            if self.state in ("in doubt", "refused"):
                self._publisher.note_raised()
            raise fresh_copy(self.failure)

    @property
    def is_seen(self) -> bool:
        """Whether the program has asked for the outcome."""
        return self._seen

    def end(self, state: Outcome, failure: Exception | None) -> None:
        """Set the final state, and wake the tasks that wait for it."""
        self.state = state
        self.failure = failure
        if self._waiter is not None:
            self._waiter.wake()

    def matches(self, content: Content) -> tuple[bool, bool]:
        """Compare the properties and the body with those of a returned message."""
        try:
            header = write_header(self.content, USUAL)
        except LocalProtocolError:
            header = b""
        same_header = content.octets is not None and header.endswith(content.octets)
        return same_header, self.body == content.body

    def __repr__(self) -> str:
        return f"<Ticket {self.place}, {len(self.body)} octets, {self.state}>"


class PublishError(AmqpError):
    """The server did not confirm a message.

    Attributes:
        ticket: the publish: exchange, routing key, properties and body.
    """

    def __init__(self, message: str, ticket: Ticket) -> None:
        super().__init__(message)
        self.ticket = ticket


class NackedError(PublishError):
    """The server refused the message (RabbitMQ's basic.nack).

    A queue is full and rejects publishes, or the server could not store the message.
    """

    def __init__(self, ticket: Ticket) -> None:
        super().__init__(
            f"the server refused a message for {ticket.place} (basic.nack): a queue is full and rejects publishes, "
            "or could not store it; try again later",
            ticket,
        )


class ReturnedError(PublishError):
    """The server could not route a mandatory message and returned it (basic.return).

    Attributes:
        code: the reply code, 312 for no route.
        text: the server's reply-text.
        message: the returned message.
    """

    def __init__(self, ticket: Ticket, message: ReturnedMessage) -> None:
        super().__init__(
            f"a message for {ticket.place} was returned: {message.code} {printable(message.text)}; "
            "bind a queue for this routing key, or publish without mandatory",
            ticket,
        )
        self.message = message
        self.code: Final = message.code
        self.text: Final = message.text


class PublishInDoubtError(PublishError):
    """The channel or connection was lost before the confirm of a message.

    The server may have the message or not; publishing again may duplicate it. ``__cause__`` is the reason for
    the loss.
    """

    def __init__(self, ticket: Ticket, reason: BaseException | None) -> None:
        super().__init__(
            f"a message for {ticket.place} is in doubt: {reason or 'the publisher was closed'}; "
            "publish it again if a duplicate does no harm",
            ticket,
        )
        self.__cause__ = reason
