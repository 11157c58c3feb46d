"""A publisher: a channel with publisher confirms (RabbitMQ's confirm.select).

Each publish ends in exactly one way:

* *confirmed*: the server has the message, and so has every queue that gets it.
* *refused*: ``NackedError``; ``ChannelClosedError`` if it is certain that the server closed the channel for
  this publish; or ``LocalProtocolError`` if it cannot be sent again after a reconnect, because its properties are
  larger than the new frame-max.
* *returned*: ``ReturnedError``; the message was mandatory, and the server could route it to no queue.
* *in doubt*: ``PublishInDoubtError``; the channel or the connection was lost before the confirm. A connection
  that reconnects publishes the message again instead, in the same order and before all new messages: at least
  once.

A return carries no number. Servers send it before the confirm of the same publish, so it belongs to the oldest
unconfirmed mandatory publish with this exchange and routing key; if there are several, to the one with equal
properties and body.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any, Final, Unpack

import trio

from trio_amqp10.amqp091 import spec
from trio_amqp10.core.arguments import check_count
from trio_amqp10.core.errors import LocalProtocolError
from trio_amqp10.net.errors import fresh_copy

from .channel import Channel
from .errors import ChannelClosedError
from .pending_publish import NackedError, PublishInDoubtError, ReturnedError, Ticket
from .publish_content import content_of

if TYPE_CHECKING:
    from trio_amqp10.amqp091.wire.content import BasicProperties, Content
    from trio_amqp10.amqp091.wire.methods import Method

    from .connection_base import ConnectionBase
    from .errors import ReturnedMessage
    from .pending_publish import Outcome
    from .publish_content import PublishProperties

_UNSEEN: Final = 1000
"""Failed publishes kept until the program asks for them; others are only counted."""


class Publisher(Channel):
    """A channel whose publishes are confirmed; made by ``Connection.open_publisher``.

    Args:
        window: the most publishes that may wait for their confirm.
        republish: after a loss of the connection, publish unconfirmed messages again; otherwise they are in
            doubt.
    """

    def __init__(
        self,
        connection: ConnectionBase[Any],
        prefetch: int | None,
        *,
        window: int = 1000,
        republish: bool = True,
    ) -> None:
        super().__init__(connection, prefetch)
        check_count("window", window)
        self.window = window
        self._republish = republish
        self._unconfirmed: dict[int, Ticket] = {}
        self._lost: list[Ticket] = []  # to be published again, in order
        self._mandatory: dict[tuple[str, str], deque[Ticket]] = {}
        # failed publishes whose outcome the program has not asked for
        self._unseen: dict[Ticket, None] = {}
        self._unseen_more = 0

    @property
    def unconfirmed(self) -> int:
        """The number of publishes that wait for their confirm."""
        return len(self._unconfirmed) + len(self._lost)

    def setup(self) -> list[Method]:
        """Add confirm.select to the requests of every opening."""
        return [*super().setup(), spec.ConfirmSelect()]

    # -- what a program calls ---------------------------------------------------------------

    async def publish(
        self,
        exchange: str,
        routing_key: str,
        body: bytes,
        *,
        mandatory: bool = False,
        properties: BasicProperties | None = None,
        **fields: Unpack[PublishProperties],
    ) -> None:
        """Publish a message, and wait until the server has confirmed it.

        The arguments are those of ``Channel.publish``.

        Raises:
            NackedError, ReturnedError, PublishInDoubtError, ChannelClosedError: as ``Ticket.outcome``.
            LocalProtocolError: a property or name does not fit its type, and nothing was sent; or as
                ``Ticket.outcome``.

        Cancelled: nothing was sent, or the message was sent and its outcome stays unknown.
        """
        content = content_of(body, properties, fields)
        await self.wait_unblocked()
        ticket = Ticket(self, exchange, routing_key, mandatory, content)
        self.connection.pump.write_at_once(self._send, ticket)
        await ticket.outcome()

    async def transmit(
        self,
        exchange: str,
        routing_key: str,
        body: bytes,
        *,
        mandatory: bool = False,
        properties: BasicProperties | None = None,
        **fields: Unpack[PublishProperties],
    ) -> Ticket:
        """Publish a message once the window has room, without waiting for its confirm.

        The arguments are those of ``Channel.publish``. ``outcome`` of the returned publish waits for the confirm. A
        failure that the program has not asked for is raised by ``wait_confirmed``, and at the end of the
        publisher's block.

        Raises:
            LocalProtocolError: a property or name does not fit its type; nothing was sent.

        Cancelled: nothing was sent.
        """
        content = content_of(body, properties, fields)
        await self.wait_unblocked()
        ticket = Ticket(self, exchange, routing_key, mandatory, content)
        self._send(ticket)
        self.connection.wake_writer()
        return ticket

    async def wait_confirmed(self) -> None:
        """Wait until every publish has ended.

        Raises:
            NackedError, ReturnedError, PublishInDoubtError, ChannelClosedError, LocalProtocolError: the first
                failure that the program has not asked for, with a note of how many there are.

        Cancelled: the publishes go on.
        """
        await trio.lowlevel.checkpoint()
        self.connection.expect()
        try:
            while self.unconfirmed:
                await self.wait()
        finally:
            self.connection.expect_no_more()
        unseen, count = self._unseen, len(self._unseen) + self._unseen_more
        self._unseen, self._unseen_more = {}, 0
        ticket = next(iter(unseen), None)
        if ticket is not None and ticket.failure is not None:
            failure = fresh_copy(ticket.failure)
            self.note_raised()
            if count > 1:
                failure.add_note(f"{count} publishes failed whose outcome was not awaited; this is the first")
            raise failure

    async def finish(self) -> None:
        """Wait until every publish has ended."""
        await self.wait_confirmed()

    def _is_clear(self) -> bool:
        return len(self._unconfirmed) < self.window and not self._lost and super()._is_clear()

    def _send(self, ticket: Ticket) -> None:
        number = self.engine.publish(
            ticket.exchange, ticket.routing_key, ticket.content, mandatory=ticket.mandatory
        )
        self._unconfirmed[number] = ticket
        if ticket.mandatory:
            self._mandatory.setdefault((ticket.exchange, ticket.routing_key), deque()).append(ticket)

    def see(self, ticket: Ticket) -> None:
        """Note that the program asks for the outcome of ``ticket``."""
        self._unseen.pop(ticket, None)

    # -- what the server sends --------------------------------------------------------------

    def on_confirmed(self, numbers: tuple[int, ...], *, refused: bool) -> None:
        """End the publishes that the server confirmed or refused."""
        unconfirmed = self._unconfirmed
        for number in numbers:
            ticket = unconfirmed.pop(number, None)
            if ticket is None:
                continue
            if ticket.mandatory:
                self._forget_mandatory(ticket)
            if ticket.returned is not None:
                # A server confirms a returned message too, after basic.return.
                self._end(ticket, "returned", ReturnedError(ticket, ticket.returned))
            elif refused:
                self._end(ticket, "refused", NackedError(ticket))
            else:
                ticket.end("confirmed", None)

    def on_returned(self, message: ReturnedMessage, content: Content) -> None:
        """Keep a returned message until the confirm of its publish comes."""
        waiting = [
            ticket
            for ticket in self._mandatory.get((message.exchange, message.routing_key), ())
            if ticket.returned is None
        ]
        if not waiting:
            super().on_returned(message, content)
            return
        # A server may change headers on the way, so possibly no publish matches exactly: take the best match.
        best = max(waiting, key=lambda ticket: ticket.matches(content)) if len(waiting) > 1 else waiting[0]
        best.returned = message

    def shut(self, failure: Exception | None) -> None:
        """End the channel: unconfirmed publishes are refused if certain, or in doubt."""
        tickets = [*self._lost, *self._unconfirmed.values()]
        self._lost.clear()
        self._unconfirmed.clear()
        self._mandatory.clear()
        # With one publish under way, it must be the one for which the server closed the channel.
        certain = (
            len(tickets) == 1
            and isinstance(failure, ChannelClosedError)
            and failure.method == spec.BasicPublish.plan.name
        )
        for ticket in tickets:
            if ticket.returned is not None:
                self._end(ticket, "returned", ReturnedError(ticket, ticket.returned))
            elif certain:
                self._end(ticket, "refused", failure)
            else:
                self._end(ticket, "in doubt", PublishInDoubtError(ticket, failure))
        super().shut(failure)

    def on_lost(self, failure: Exception | None) -> None:
        """Keep unconfirmed publishes to publish them again, or end them as in doubt."""
        if failure is None:
            tickets = list(self._unconfirmed.values())
            self._unconfirmed.clear()
            self._mandatory.clear()
            for ticket in tickets:
                if ticket.returned is not None:
                    self._end(ticket, "returned", ReturnedError(ticket, ticket.returned))
                elif self._republish:
                    self._lost.append(ticket)
                else:
                    self._end(ticket, "in doubt", PublishInDoubtError(ticket, self.connection.loss))
        super().on_lost(failure)

    def on_restored(self) -> None:
        """Publish unconfirmed messages again, in the same order."""
        lost, self._lost = self._lost, []
        for ticket in lost:
            try:
                self._send(ticket)
            except LocalProtocolError as refusal:  # the properties exceed the new, smaller frame-max
                self._end(ticket, "refused", refusal)
        super().on_restored()

    def _forget_mandatory(self, ticket: Ticket) -> None:
        key = (ticket.exchange, ticket.routing_key)
        tickets = self._mandatory.get(key)
        if tickets is not None:
            tickets.remove(ticket)
            if not tickets:
                del self._mandatory[key]

    def _end(self, ticket: Ticket, state: Outcome, failure: Exception | None) -> None:
        if not ticket.is_seen:
            if len(self._unseen) < _UNSEEN:
                self._unseen[ticket] = None
            else:
                self._unseen_more += 1
        ticket.end(state, failure)
