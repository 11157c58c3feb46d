"""A channel of the client of 10.3 (C 470-1096, class tx).

It offers tickets, declarations, publishing, alerts and transactions. Each channel requests an access ticket when it is opened,
and includes it in the methods that need one (C 600-652). ``amqp091.client.channel_base`` has the parts that are the same in
0-9-1.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, Unpack

import trio

from trio_amqp10.amqp091.client.channel_base import ChannelBase
from trio_amqp10.amqp091.client.connection_base import DEFAULT_PREFETCH
from trio_amqp10.amqp091.client.publish_content import content_of
from trio_amqp10.amqp091.client.transaction import TransactionBase
from trio_amqp10.amqp_10_3 import spec
from trio_amqp10.core.arguments import check_text, check_type, shown, table_of
from trio_amqp10.core.errors import LocalProtocolError
from trio_amqp10.net.waiters import Waiter

from .errors import Alert, MessageAbortedError
from .queues import Delivery, Queue

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from trio_amqp10.amqp091.client.publish_content import PublishProperties
    from trio_amqp10.amqp091.client.reply import Reply
    from trio_amqp10.amqp091.engine.events import Arrival
    from trio_amqp10.amqp091.wire.content import BasicProperties
    from trio_amqp10.amqp091.wire.methods import Method

    from .connection import Connection

_log = logging.getLogger("trio_amqp10.amqp_10_3")

Right = Literal["passive", "active", "write", "read"]
"""A right of a ticket; see ``Channel.request_access``."""

ALL_RIGHTS: Final[tuple[Right, ...]] = ("passive", "active", "write", "read")

_WITH_TICKET: Final = frozenset(
    plan.name for plan in spec.METHODS if any(name == "ticket" for name, _ in plan.arguments)
)
_ALERTS: Final = 100
"""The maximum of alerts that wait for the program; the oldest are dropped."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelOptions:
    """The options of a channel; ``Connection.open_channel`` describes them."""

    prefetch: int | None = DEFAULT_PREFETCH
    prefetch_octets: int = 0
    realm: str | None = "/data"
    exclusive: bool = False
    rights: Collection[Right] = ALL_RIGHTS


class Channel(ChannelBase[Delivery]):
    """A channel, as returned by ``Connection.open_channel``.

    Every call raises ``ChannelClosedError`` after the server closed the channel, ``ConnectionClosedError`` after the connection
    was lost for good, and ``trio.ClosedResourceError`` after the channel was closed here. While a connection that reconnects is
    down, calls wait until it is back, and a request whose answer was lost is sent again. A channel with an exclusive ticket is
    not restored, because the server may still count the old channel. Names in ``arguments`` and ``headers`` have no hyphens:
    ``x_max_length`` is the argument ``x-max-length`` of 0-9-1.

    Attributes:
        connection: its connection.
        engine: the engine's channel, for methods of the classes file, stream, dtx, tunnel and test; replaced after the connection
            was restored.
        ticket: the access ticket in the methods of this channel; 0 for none.
    """

    connection: Connection
    delivery_type: ClassVar[type[Any]] = Delivery
    deliver_method: ClassVar[type[Method]] = spec.BasicDeliver
    ack_method: ClassVar[type[Method]] = spec.BasicAck

    def __init__(self, connection: Connection, options: ChannelOptions) -> None:
        super().__init__(connection, options.prefetch)
        self.ticket: int = 0
        self._prefetch_octets = options.prefetch_octets
        self._access: spec.AccessRequest | None = None
        if options.realm is not None:
            self._ask_for(_access_request(options.realm, options.exclusive, options.rights))
        self._alerts: deque[Alert] = deque()
        self._alerted = Waiter()

    def _ask_for(self, access: spec.AccessRequest) -> None:
        """Request this access each time the channel is opened."""
        self._access = access
        if access.active:
            self.connection.access = access
        if access.exclusive:
            self.restores = False

    def opening(self) -> Mapping[str, Any]:
        """Return the window of the channel in octets, for channel.open (C 516-518)."""
        return {"prefetch_max": self._prefetch_octets}

    def setup(self) -> list[Method]:
        """Return the methods to send when the channel is opened, with the ticket request."""
        return [*super().setup(), *([] if self._access is None else [self._access])]

    def make(self, name: str, /, **arguments: Any) -> Any:
        """Make a method by its name, with the ticket of the channel if it takes one."""
        if name in _WITH_TICKET:
            arguments["ticket"] = self.ticket
        return super().make(name, **arguments)

    def ask(self, method: Any, late: Callable[[Arrival], None] | None = None) -> Reply:
        """Send a request, after a reconnect with the new ticket; see ``ChannelBase``."""
        if method.plan.name in _WITH_TICKET and method.ticket != self.ticket:
            method = replace(method, ticket=self.ticket)
        return super().ask(method, late)

    # -- access -----------------------------------------------------------------------------

    async def request_access(
        self, realm: str = "/data", *, exclusive: bool = False, rights: Collection[Right] = ALL_RIGHTS
    ) -> None:
        """Request another access ticket (10.3, access.request, C 600-652).

        The channel uses it from then on.

        Args:
            realm: the realm of the ticket. A container has ``/data``, for all queues and exchanges.
            exclusive: no other channel may have a ticket for the realm.
            rights: the rights of the ticket: ``passive`` to look up objects, ``active`` to create and delete, ``write`` to
                publish, ``read`` to consume, get and purge.

        Raises:
            ChannelClosedError: there is no such realm (402).
            ConnectionClosedError: the user may not have the ticket, or the realm is in exclusive use (403); this ends the
                connection.
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
        """Create or check an exchange (10.3, exchange.declare, C 682-697).

        An existing exchange must have the same type; its other properties are ignored.

        Args:
            name: up to 255 octets; must not begin with ``amq.``.
            type: ``direct``, ``fanout``, ``topic``, ``headers``, or another type of the server.
            passive: only check that the exchange exists.
            durable: it survives a restart of the server.
            auto_delete: it is deleted with the last binding from it.
            internal: only the server publishes to it.
            arguments: such as ``alternate_exchange``.

        Raises:
            NotFoundError: ``passive`` is set, and the exchange does not exist.
            AccessRefusedError: the ticket does not permit it, or the name is reserved.
            ConnectionClosedError: the exchange has another type (530), or the type does not exist (503).
            ChannelClosedError, trio.ClosedResourceError: the channel is closed.

        Cancelled: the exchange may have been created or not.
        """
        await self.make_exchange(
            name,
            type=type,
            passive=passive,
            durable=durable,
            auto_delete=auto_delete,
            internal=internal,
            arguments=table_of("arguments", arguments),
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
        """Create or check a queue (10.3, queue.declare, C 766-794).

        The ``durable`` and ``auto_delete`` bits of an existing queue are ignored.

        Args:
            name: up to 255 octets; must not begin with ``amq.``; if empty, the server chooses a name.
            passive: only check that the queue exists.
            durable: it survives a restart of the server.
            exclusive: only this connection can use the queue, and the queue is deleted with the connection.
            auto_delete: it is deleted after some time without use.
            arguments: such as ``x_max_length``, ``x_message_ttl``.

        Raises:
            NotFoundError: ``passive`` is set, and the queue does not exist.
            PreconditionFailedError: the queue has other arguments.
            ResourceLockedError: the queue belongs to another connection.
            AccessRefusedError: the ticket does not permit it.
            ConnectionClosedError: the name is reserved (403).
            ChannelClosedError, trio.ClosedResourceError: the channel is closed.

        Cancelled: the queue may have been created or not.
        """
        made = await self.make_queue(
            name,
            passive=passive,
            durable=durable,
            exclusive=exclusive,
            auto_delete=auto_delete,
            arguments=table_of("arguments", arguments),
        )
        return Queue(self, *made)

    def queue(self, name: str) -> Queue:
        """Return the queue of this name, without asking the server."""
        check_text("name", name)
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
        """Publish a message (10.3, basic.publish, C 1005-1023).

        The call waits only for room to write. Success does not mean that the message arrived: use
        ``Connection.open_transaction`` to confirm messages by a commit, and ``next_alert`` to learn of messages that a queue
        refused. While a connection that reconnects is down, the call waits. Messages that were written before the loss are not
        published again.

        Args:
            exchange: name of the exchange; empty for the default exchange, which routes by the name of the queue.
            routing_key: up to 255 octets.
            body: any octets.
            mandatory: return the message if no queue gets it; see ``returns``.
            immediate: return the message unless a consumer can take it now.
            properties: all properties as one object, which can be reused for many messages.
            fields: single properties, such as ``delivery_mode=2``, ``headers={...}``, ``expiration="60000"`` (milliseconds).

        Raises:
            LocalProtocolError: a property or name does not fit its type, such as a header with a hyphen in its name; or both
                ``properties`` and ``fields`` are given. Nothing was sent.
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
        """Wait for the next warning of the server (10.3, channel.alert).

        A warning reports, for example, a message that a queue refused, or the end of a consumer. At most 100 warnings are kept;
        the oldest are dropped. All of them are logged.

        Raises:
            ChannelClosedError, ConnectionClosedError, trio.ClosedResourceError: the channel is closed.

        Cancelled: no alert is lost.
        """
        await trio.lowlevel.checkpoint()
        while not self._alerts:
            self.check()
            await self._alerted.wait()
        return self._alerts.popleft()

    # -- events of the engine and the connection ---------------------------------------------

    def _take_ticket(self, arrival: Arrival) -> None:
        method: Any = arrival.method
        self.ticket = method.ticket
        self.take_answer(arrival)

    def _take_alert(self, arrival: Arrival) -> None:
        method: Any = arrival.method
        alert = Alert(method.reply_code, method.reply_text, method.details)
        _log.warning("warning of the server on channel %d: %d %r", self.number, alert.code, alert.text)
        consumer = self._consumers.pop(alert.details.get("consumer_tag", ""), None)
        if consumer is not None:
            consumer.on_cancelled()
        if len(self._alerts) >= _ALERTS:
            self._alerts.popleft()
        self._alerts.append(alert)
        self._alerted.wake()

    def on_aborted(self, request: Method) -> None:
        """Fail a request whose answer the server aborted."""
        found = self._replies.pop(id(request), None)
        if found is not None:
            found[1].fail(MessageAbortedError("the server aborted a message before it was complete"))

    def shut(self, failure: Exception | None) -> None:
        """Close the channel, and wake the tasks that wait for alerts."""
        super().shut(failure)
        self._alerted.wake()

    takes: ClassVar[Mapping[type[Method], Callable[[Any, Arrival], None]]] = {
        spec.AccessRequestOk: _take_ticket,
        spec.BasicConsumeOk: ChannelBase[Delivery].take_consume_ok,
        spec.BasicReturn: ChannelBase[Delivery].take_return,
        spec.ChannelAlert: _take_alert,
        spec.ChannelFlowOk: ChannelBase[Delivery].take_flow_ok,
    }
    """The methods that need special treatment: unsolicited ones, and tickets."""


class Transaction(TransactionBase[Delivery], Channel):
    """A channel with transactions, as returned by ``Connection.open_transaction``.

    Leaving its block commits, or rolls back after an exception. ``commit`` and ``rollback`` end one transaction and begin the
    next. A transaction settles only deliveries of this channel; acknowledged deliveries are unsettled again after a rollback.

    The channel is never restored with its connection. Uncommitted work is discarded. If the answer to a commit is lost,
    ``TransactionInDoubtError`` is raised: the server did all of the transaction, or nothing. 10.3 has no way to ask for the
    result. A program that publishes the same messages in a new transaction loses nothing, but may publish them twice.
    """


def _access_request(realm: str, exclusive: bool, rights: Collection[Right]) -> spec.AccessRequest:
    check_text("realm", realm)
    check_type("rights", rights, Collection, f"a collection of {', '.join(ALL_RIGHTS)}")
    unknown = [each for each in rights if each not in ALL_RIGHTS]
    if unknown:
        raise LocalProtocolError(f"rights={shown(unknown)}: expected only {', '.join(ALL_RIGHTS)}")
    return spec.AccessRequest(
        realm=realm,
        exclusive=exclusive,
        passive="passive" in rights,
        active="active" in rights,
        write="write" in rights,
        read="read" in rights,
    )
