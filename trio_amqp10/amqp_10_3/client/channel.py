"""A channel of the client of 10.3: tickets, declarations, publishes, alerts, transactions (C 470-1096, class tx).

Each channel asks for an access ticket as it is opened, and names it in what needs one (C 600-652). What it has in common with a
channel of 0-9-1 is in ``amqp091.client.channel_base``.
"""

from __future__ import annotations

import logging
from collections import deque
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, Unpack

import trio

from trio_amqp10.amqp091.client.channel_base import ChannelBase
from trio_amqp10.amqp091.client.messages import content_of
from trio_amqp10.amqp091.client.transaction import TransactionBase
from trio_amqp10.amqp_10_3 import spec
from trio_amqp10.errors import LocalProtocolError
from trio_amqp10.net.waiters import Waiter

from .errors import Alert, MessageAbortedError
from .queues import Delivery, Queue

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from trio_amqp10.amqp091.client.messages import PublishProperties
    from trio_amqp10.amqp091.client.reply import Reply
    from trio_amqp10.amqp091.content import BasicProperties
    from trio_amqp10.amqp091.events import Arrival
    from trio_amqp10.amqp091.methods import Method

    from .connection import Connection

__all__ = ["ALL_RIGHTS", "Channel", "Right", "Transaction"]

_log = logging.getLogger("trio_amqp10.amqp_10_3")

Right = Literal["passive", "active", "write", "read"]
"""What a ticket permits: to look whether something is there, to make and delete it, to publish, to consume."""

ALL_RIGHTS: Final[tuple[Right, ...]] = ("passive", "active", "write", "read")

_WITH_TICKET: Final = frozenset(
    plan.name for plan in spec.METHODS if any(name == "ticket" for name, _ in plan.arguments)
)
_ALERTS: Final = 100
"""Alerts that wait for a program to take them; the oldest are dropped."""


class Channel(ChannelBase[Delivery]):
    """One channel; made by ``Connection.open_channel``.

    Every call raises ``ChannelClosedError`` after the server closed the channel, ``ConnectionClosedError`` after the connection
    is gone for good, and ``trio.ClosedResourceError`` after it was closed here. While a connection that reconnects is down,
    calls wait until it is back, and a request whose answer was lost is sent again; a channel whose ticket is exclusive does not
    come back, because the server may still see the old one. Names in ``arguments`` and ``headers`` have no hyphens:
    ``x_max_length`` is the argument ``x-max-length`` of 0-9-1.

    Attributes:
        connection: its connection.
        engine: the engine's channel, for methods of the classes file, stream, dtx, tunnel and test; another one after the
            connection came back.
        ticket: the access ticket that the methods of this channel name; 0 for none.
    """

    connection: Connection
    delivery_type: ClassVar[type[Any]] = Delivery
    deliver_method: ClassVar[type[Method]] = spec.BasicDeliver
    ack_method: ClassVar[type[Method]] = spec.BasicAck

    def __init__(
        self,
        connection: Connection,
        prefetch: int | None,
        *,
        prefetch_octets: int,
        realm: str | None,
        exclusive: bool,
        rights: Collection[Right],
    ) -> None:
        super().__init__(connection, prefetch)
        self.ticket: int = 0
        self._prefetch_octets = prefetch_octets
        self._access: spec.AccessRequest | None = None
        if realm is not None:
            self._ask_for(_access_request(realm, exclusive, rights))
        self._alerts: deque[Alert] = deque()
        self._alerted = Waiter()

    def _ask_for(self, access: spec.AccessRequest) -> None:
        """This is asked for each time that the channel is opened."""
        self._access = access
        if access.active:
            self.connection.access = access
        if access.exclusive:
            self.restores = False

    def opening(self) -> Mapping[str, Any]:
        """The window of the channel in octets (C 516-518)."""
        return {"prefetch_max": self._prefetch_octets}

    def setup(self) -> list[Method]:
        """What is sent when the channel is opened: a request for a ticket."""
        return [*super().setup(), *([] if self._access is None else [self._access])]

    def make(self, name: str, /, **arguments: Any) -> Any:
        """A method by its name, with the ticket of the channel where it takes one."""
        if name in _WITH_TICKET:
            arguments["ticket"] = self.ticket
        return super().make(name, **arguments)

    def ask(self, method: Any, late: Callable[[Arrival], None] | None = None) -> Reply:
        """As of ``ChannelBase``; a request that was made before a loss names the ticket of now."""
        if method.plan.name in _WITH_TICKET and method.ticket != self.ticket:
            method = replace(method, ticket=self.ticket)
        return super().ask(method, late)

    # -- access -----------------------------------------------------------------------------

    async def request_access(
        self, realm: str = "/data", *, exclusive: bool = False, rights: Collection[Right] = ALL_RIGHTS
    ) -> None:
        """Ask for another access ticket, which this channel names from now on (10.3, access.request, C 600-652).

        Args:
            realm: what it is for. A container has ``/data``, of all queues and exchanges.
            exclusive: no other channel is to have a ticket of the realm.
            rights: what it permits: ``passive`` to look whether something is there, ``active`` to make and delete, ``write`` to
                publish, ``read`` to consume, get and purge.

        Raises:
            ChannelClosedError: there is no such realm (402).
            ConnectionClosedError: the user may not (403), or the realm is in exclusive use (403); that ends the connection.
            LocalProtocolError: there is no such right.
            trio.ClosedResourceError: the channel was closed here.

        Cancelled: the channel may have the ticket or not.
        """
        request = _access_request(realm, exclusive, rights)
        await self.call(lambda: request)
        self._ask_for(request)

    # -- exchanges and queues ---------------------------------------------------------------

    async def declare_exchange(
        self,
        name: str,
        type: str = "direct",  # noqa: A002 - the name that the class reference gives it
        *,
        passive: bool = False,
        durable: bool = False,
        auto_delete: bool = False,
        internal: bool = False,
        arguments: Mapping[str, Any] | None = None,
    ) -> None:
        """Make an exchange, or find that it is there, whatever it is but for its type (10.3, exchange.declare, C 682-697).

        Args:
            name: up to 255 octets; not beginning with ``amq.``.
            type: ``direct``, ``fanout``, ``topic``, ``headers``, or one that the server has besides.
            passive: only look whether it is there.
            durable: it outlives a restart of the server.
            auto_delete: it goes with the last binding from it.
            internal: only the server publishes to it.
            arguments: such as ``alternate_exchange``.

        Raises:
            NotFoundError: passive, and it is not there.
            AccessRefusedError: the ticket does not permit it, or the name is reserved.
            ConnectionClosedError: it is there, and is of another type (530), or there is no such type (503).
            ChannelClosedError, trio.ClosedResourceError: the channel is closed.

        Cancelled: it may have been made or not.
        """
        await self.make_exchange(
            name,
            type=type,
            passive=passive,
            durable=durable,
            auto_delete=auto_delete,
            internal=internal,
            arguments=dict(arguments or {}),
        )

    async def declare_queue(
        self,
        name: str = "",
        *,
        passive: bool = False,
        durable: bool = False,
        exclusive: bool = False,
        auto_delete: bool = False,
        arguments: Mapping[str, Any] | None = None,
    ) -> Queue:
        """Make a queue, or find that it is there, whatever its bits are (10.3, queue.declare, C 766-794).

        Args:
            name: up to 255 octets; not beginning with ``amq.``; empty: the server chooses one.
            passive: only look whether it is there.
            durable: it outlives a restart of the server.
            exclusive: only this connection uses it, and it goes with the connection.
            auto_delete: it goes after some time of disuse.
            arguments: such as ``x_max_length``, ``x_message_ttl``.

        Raises:
            NotFoundError: passive, and it is not there.
            PreconditionFailedError: it is there with other arguments.
            ResourceLockedError: it is another connection's.
            AccessRefusedError: the ticket does not permit it.
            ConnectionClosedError: the name is reserved (403).
            ChannelClosedError, trio.ClosedResourceError: the channel is closed.

        Cancelled: it may have been made or not.
        """
        made = await self.make_queue(
            name,
            passive=passive,
            durable=durable,
            exclusive=exclusive,
            auto_delete=auto_delete,
            arguments=dict(arguments or {}),
        )
        return Queue(self, *made)

    def queue(self, name: str) -> Queue:
        """The queue of this name, without asking the server."""
        return Queue(self, self.connection.topology.name_of(name))

    # -- publishing -------------------------------------------------------------------------

    async def publish(
        self,
        exchange: str,
        routing_key: str,
        body: bytes,
        *,
        mandatory: bool = False,
        immediate: bool = False,
        properties: BasicProperties | None = None,
        **fields: Unpack[PublishProperties],
    ) -> None:
        """Publish a message, and wait only until there is room to write it (10.3, basic.publish, C 1005-1023).

        Whether it arrives is not known: ``Connection.open_transaction`` confirms it by a commit, and ``next_alert`` has what a
        queue refused. It waits while the connection is down and will come back; what was written before is not published again.

        Args:
            exchange: its name; empty for the default exchange, which routes by the queue's name.
            routing_key: up to 255 octets.
            body: any octets.
            mandatory: have it returned if no queue gets it; see ``returns``.
            immediate: have it returned unless a consumer can take it now.
            properties: all properties as one object, which may be used for many messages.
            fields: single properties, such as ``delivery_mode=2``, ``headers={...}``, ``expiration="60000"`` (milliseconds).

        Raises:
            LocalProtocolError: a property or name does not fit its type, such as a header with a hyphen in its name; or there are
                both ``properties`` and ``fields``. Nothing was sent.
            ChannelClosedError, ConnectionClosedError, trio.ClosedResourceError: the channel is closed.

        Cancelled: nothing was sent.
        """
        content = content_of(body, properties, fields)
        await self.wait_unblocked()
        method = self.make(
            "basic.publish",
            exchange=exchange,
            routing_key=routing_key,
            mandatory=mandatory,
            immediate=immediate,
        )
        self.engine.send(method, content)
        self.connection.wake_writer()

    async def next_alert(self) -> Alert:
        """The next warning of the server's: a message that a queue refused, a consumer that has ended (10.3, channel.alert).

        At most 100 wait here; the oldest are dropped. All of them are logged.

        Raises:
            ChannelClosedError, ConnectionClosedError, trio.ClosedResourceError: the channel is closed.

        Cancelled: none is lost.
        """
        await trio.lowlevel.checkpoint()
        while not self._alerts:
            self.check()
            await self._alerted.wait()
        return self._alerts.popleft()

    # -- what the engine and the connection report ------------------------------------------

    def _take_ticket(self, arrival: Arrival) -> None:
        method: Any = arrival.method
        self.ticket = method.ticket
        self.take_answer(arrival)

    def _take_alert(self, arrival: Arrival) -> None:
        method: Any = arrival.method
        alert = Alert(method.reply_code, method.reply_text, method.details)
        _log.warning("the server warns on channel %d: %d %r", self.number, alert.code, alert.text)
        consumer = self._consumers.pop(alert.details.get("consumer_tag", ""), None)
        if consumer is not None:
            consumer.on_cancelled()
        if len(self._alerts) >= _ALERTS:
            self._alerts.popleft()
        self._alerts.append(alert)
        self._alerted.wake()

    def on_aborted(self, request: Method) -> None:
        """The server gave up what it answered a request with."""
        found = self._replies.pop(id(request), None)
        if found is not None:
            found[1].fail(MessageAbortedError("the server gave up a message before it was complete"))

    def shut(self, failure: Exception | None) -> None:
        """As of ``ChannelBase``."""
        super().shut(failure)
        self._alerted.wake()

    takes: ClassVar[Mapping[type[Method], Callable[[Any, Arrival], None]]] = {
        spec.AccessRequestOk: _take_ticket,
        spec.BasicConsumeOk: ChannelBase[Delivery].take_consume_ok,
        spec.BasicReturn: ChannelBase[Delivery].take_return,
        spec.ChannelAlert: _take_alert,
        spec.ChannelFlowOk: ChannelBase[Delivery].take_flow_ok,
    }
    """What is no answer to a request, but for deliveries; and tickets."""


class Transaction(TransactionBase[Delivery], Channel):
    """A channel with transactions; made by ``Connection.open_transaction``.

    Leaving its block commits, or rolls back after an exception. ``commit`` and ``rollback`` end one transaction and begin the
    next. It settles only deliveries that came on itself: those that were acknowledged and rolled back are unsettled again.

    It never comes back with its connection. What was not committed has not happened, and a commit without an answer raises
    ``TransactionInDoubtError``: all of it has happened, or nothing. 10.3 has no way to ask, so a program that publishes the same
    again in a new transaction loses nothing, and may publish twice what that one commit held.
    """


def _access_request(realm: str, exclusive: bool, rights: Collection[Right]) -> spec.AccessRequest:
    unknown = sorted(set(rights) - set(ALL_RIGHTS))
    if unknown:
        raise LocalProtocolError(f"no such right: {', '.join(unknown)}; there are {', '.join(ALL_RIGHTS)}")
    return spec.AccessRequest(
        realm=realm,
        exclusive=exclusive,
        passive="passive" in rights,
        active="active" in rights,
        write="write" in rights,
        read="read" in rights,
    )
