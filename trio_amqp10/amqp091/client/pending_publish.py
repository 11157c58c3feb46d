"""One publish of a publisher, and how it ended (0-9-1, basic.publish, with RabbitMQ's confirms)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal, Protocol, TypeAlias

import trio

from trio_amqp10.amqp091.content import write_header
from trio_amqp10.amqp091.fields import USUAL
from trio_amqp10.errors import LocalProtocolError
from trio_amqp10.net.waiters import Waiter

from .reply import anew

if TYPE_CHECKING:
    from trio_amqp10.amqp091.content import BasicProperties, Content
    from trio_amqp10.net.waiters import CheckpointThrottle

    from .connection_base import ConnectionBase
    from .errors import ReturnedMessage

__all__ = ["Outcome", "Ticket"]

Outcome: TypeAlias = Literal["waiting", "confirmed", "refused", "returned", "in doubt"]


class TicketOwner(Protocol):
    """What a ticket asks of its publisher."""

    connection: ConnectionBase[Any]
    pace: CheckpointThrottle

    def see(self, ticket: Ticket) -> None:
        """A program asks for its outcome."""

    def note_raised(self) -> None:
        """The failure of the channel was raised."""


class Ticket:
    """One publish of a publisher, and how it ended.

    Attributes:
        exchange: the exchange to which it was published.
        routing_key: its routing key.
        mandatory: whether it is returned if no queue gets it.
        content: properties and body.
        returned: what came back, if it did.
        state: ``"waiting"``, then one of ``"confirmed"``, ``"refused"``, ``"returned"``, ``"in doubt"``, for good.
        failure: what ``outcome`` raises; None while it waits, and once it is confirmed.
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
        self, publisher: TicketOwner, exchange: str, routing_key: str, mandatory: bool, content: Content
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
        """Its properties."""
        properties: BasicProperties = self.content.properties
        return properties

    @property
    def body(self) -> bytes:
        """Its octets."""
        return self.content.body

    @property
    def place(self) -> str:
        """Exchange and routing key, for people."""
        return f"exchange {self.exchange!r} with routing key {self.routing_key!r}"

    async def outcome(self) -> None:
        """Wait until the server has confirmed the message.

        Raises:
            NackedError: the server refused it.
            ReturnedError: it was mandatory, and no queue got it.
            PublishInDoubtError: the channel or the connection was lost before.
            ChannelClosedError: the server closed the channel for this very publish, e.g. as there is no such exchange.

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
            raise anew(self.failure)

    @property
    def is_seen(self) -> bool:
        """Whether a program asked for the outcome."""
        return self._seen

    def end(self, state: Outcome, failure: Exception | None) -> None:
        """It has ended."""
        self.state = state
        self.failure = failure
        if self._waiter is not None:
            self._waiter.wake()

    def matches(self, content: Content) -> tuple[bool, bool]:
        """Whether properties and body are those of a message that came back."""
        try:
            header = write_header(self.content, USUAL)
        except LocalProtocolError:
            header = b""
        same_header = content.octets is not None and header.endswith(content.octets)
        return same_header, self.body == content.body

    def __repr__(self) -> str:
        return f"<Ticket {self.place}, {len(self.body)} octets, {self.state}>"
