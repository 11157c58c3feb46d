"""A publisher: a channel in confirm mode, on which each publish ends in exactly one way (RabbitMQ's confirm.select).

How a publish ends
------------------

* *confirmed*: the server has it, and every queue that it was routed to.
* *refused*: ``NackedError``, or ``ChannelClosedError`` where it is certain which publish the server closed the channel for.
* *returned*: ``ReturnedError``; it was mandatory, and no queue got it.
* *in doubt*: ``PublishInDoubtError``; the channel or the connection was lost before the server said anything. A connection
  that reconnects publishes it again instead, in the same order and before all that is new: at least once.

A return has no number. Servers send it before the confirm of that publish, so it belongs to the oldest unconfirmed
mandatory publish with this exchange and key; among several with these, to the one with equal properties and body.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any, Final, Unpack

import trio

from trio_amqp10.amqp091 import spec
from trio_amqp10.errors import LocalProtocolError

from .channel import Channel
from .errors import ChannelClosedError, NackedError, PublishInDoubtError, ReturnedError
from .messages import content_of
from .pending_publish import Ticket
from .reply import anew

if TYPE_CHECKING:
    from trio_amqp10.amqp091.content import BasicProperties, Content
    from trio_amqp10.amqp091.methods import Method

    from .connection_base import ConnectionBase
    from .errors import ReturnedMessage
    from .messages import PublishProperties
    from .pending_publish import Outcome

__all__ = ["Publisher"]

_UNSEEN: Final = 1000
"""Failed publishes that are kept until a program asks for their outcome; more are counted."""


class Publisher(Channel):
    """A channel whose publishes are confirmed; made by ``Connection.open_publisher``.

    Args:
        window: publishes that may wait for their confirm.
        republish: after a loss of the connection, publish again what was not confirmed; otherwise it is in doubt.
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
        if window < 1:
            raise LocalProtocolError(f"a window is at least 1: {window}")
        self.window = window
        self._republish = republish
        self._unconfirmed: dict[int, Ticket] = {}
        self._lost: list[Ticket] = []  # to be published again, in order
        self._mandatory: dict[tuple[str, str], deque[Ticket]] = {}
        self._unseen: dict[Ticket, None] = {}  # those that failed, and whose outcome no program asked for
        self._unseen_more = 0

    @property
    def unconfirmed(self) -> int:
        """Publishes that wait for their confirm."""
        return len(self._unconfirmed) + len(self._lost)

    def setup(self) -> list[Method]:
        """Confirm mode, each time that the channel is opened."""
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
        """Publish a message, and wait until the server has confirmed it; arguments as ``Channel.publish``.

        Raises:
            NackedError, ReturnedError, PublishInDoubtError, ChannelClosedError: as ``Ticket.outcome``.
            LocalProtocolError: a property or name does not fit its type; nothing was sent.

        Cancelled: nothing was sent, or it was and its outcome will not be known.
        """
        ticket = await self.transmit(
            exchange, routing_key, body, mandatory=mandatory, properties=properties, **fields
        )
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
        """Publish a message once there is room in the window, and go on; arguments as ``Channel.publish``.

        The ticket's ``outcome`` is the confirm. A failure that no program asked for is raised by ``wait_confirmed``, and by
        leaving the publisher's block.

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
            NackedError, ReturnedError, PublishInDoubtError, ChannelClosedError: the first failure that no program asked for,
                with a note of how many there are.

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
            failure = anew(ticket.failure)
            self.note_raised()
            if count > 1:
                failure.add_note(
                    f"{count} publishes failed whose outcome no program asked for; this is the first"
                )
            raise failure

    async def finish(self) -> None:
        """Before the block is left without an exception: every publish has ended."""
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
        """A program asks for the outcome of a publish."""
        self._unseen.pop(ticket, None)

    # -- what the server says ---------------------------------------------------------------

    def on_confirmed(self, numbers: tuple[int, ...], *, refused: bool) -> None:
        """Publishes were confirmed or refused."""
        unconfirmed = self._unconfirmed
        for number in numbers:
            ticket = unconfirmed.pop(number, None)
            if ticket is None:
                continue
            if ticket.mandatory:
                self._forget_mandatory(ticket)
            if ticket.returned is not None:
                self._end(ticket, "returned", ReturnedError(ticket, ticket.returned))
            elif refused:
                self._end(ticket, "refused", NackedError(ticket))
            else:
                ticket.end("confirmed", None)

    def on_returned(self, message: ReturnedMessage, content: Content) -> None:
        """A message came back: remember it until its confirm comes."""
        waiting = [
            ticket
            for ticket in self._mandatory.get((message.exchange, message.routing_key), ())
            if ticket.returned is None
        ]
        if not waiting:
            super().on_returned(message, content)
            return
        # A server may change headers on the way, so that none need be equal.
        best = max(waiting, key=lambda ticket: ticket.matches(content)) if len(waiting) > 1 else waiting[0]
        best.returned = message

    def shut(self, failure: Exception | None) -> None:
        """The channel is over: what was not confirmed is in doubt, or refused where that is certain."""
        tickets = [*self._lost, *self._unconfirmed.values()]
        self._lost.clear()
        self._unconfirmed.clear()
        self._mandatory.clear()
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
        """The transport is lost: what was not confirmed is published again, or in doubt."""
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
        """The connection is back: publish again what was not confirmed, in the same order."""
        lost, self._lost = self._lost, []
        for ticket in lost:
            try:
                self._send(ticket)
            except LocalProtocolError as refusal:  # the server takes smaller frames now
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
