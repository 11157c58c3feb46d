"""One handle of the client: send, consume, browse (RFC 006, 3.5)."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import trio

from trio_amqp10.amqp_fast import spec
from trio_amqp10.amqp_fast.engine.message import Message
from trio_amqp10.amqp_fast.engine.services import Service
from trio_amqp10.amqp_fast.engine.states import ChannelState, HandleState
from trio_amqp10.amqp_fast.wire.message_number_list import read_list
from trio_amqp10.core.arguments import check_text
from trio_amqp10.core.body_octets import body_octets
from trio_amqp10.net.errors import TimedOutError, time_limit

from .endpoint import Endpoint
from .errors import DeliveryLostError, HandleClosedError, NotAvailableError, TransportLostError

if TYPE_CHECKING:
    from trio_amqp10.amqp_fast.engine.events import Arrival
    from trio_amqp10.amqp_fast.engine.handle import Handle as EngineHandle

    from .channel import Channel
    from .errors import Closed


@dataclass(frozen=True, slots=True)
class Delivery:
    """A received message.

    Attributes:
        message: head and body.
        number: the message number, for ``Channel.ack``; 0 for a peer service.
        redelivered: whether the message may have been delivered to a client before.
        destination: the full name of the destination that the message came from.
        handle: the handle that received the message.
        epoch: the epoch of the channel at that time.
    """

    message: Message
    number: int
    redelivered: bool
    destination: str
    handle: Handle
    epoch: int = 0

    @property
    def body(self) -> bytes:
        """The octets of the body."""
        return self.message.body

    @property
    def head(self) -> spec.MessageHead:
        """The fields of the head."""
        return self.message.head

    def ack(self) -> None:
        """Acknowledge this message and all earlier messages of the channel (3.3.3).

        Raises:
            DeliveryLostError: the connection was lost after the delivery; the server sends the message again.
            ChannelClosedError, ConnectionClosedError, trio.ClosedResourceError: the channel is closed.
        """
        channel = self.handle.channel
        channel.check()
        self._check_epoch()  # a message may come, and be acknowledged, while the connection is being restored
        channel.engine.write(spec.ChannelAck(message_nbr=self.number))
        self.handle.connection.wake_writer()

    def unget(self) -> None:
        """Return the message to its queue, for another client (3.5.7).

        Call this before any ``ack`` that covers the message.

        Raises:
            DeliveryLostError: the connection was lost after the delivery; the server sends the message again.
            HandleClosedError, ConnectionClosedError, trio.ClosedResourceError: the handle is closed.
            LocalProtocolError: the message did not come from a queue.
        """
        self.handle.check()
        self._check_epoch()
        self.handle.engine.write(spec.HandleUnget(message_nbr=self.number))
        self.handle.connection.wake_writer()

    def _check_epoch(self) -> None:
        if self.epoch != self.handle.channel.epoch:
            raise DeliveryLostError(
                f"message {self.number} was received before the connection was lost: the server sends it again"
            )


class Handle(Endpoint):
    """Access to a destination; made by ``Channel.open_handle``.

    After the loss of a connection that reconnects, the handle is opened again and subscribes again. Messages that were not
    received yet are dropped, because the server sends them again. Replies of a peer service, and messages of ``unreliable``
    subscriptions, are kept.

    Attributes:
        channel: the channel that the handle belongs to.
        engine: the handle of the engine; replaced after the connection was restored.
        name: name of the destination, or the common prefix of several names; for a temporary destination the name that the server
            chose.
        renamed: the name that a temporary destination had before the connection was restored; None if it still has its first name.
    """

    def __init__(self, channel: Channel, command: spec.HandleOpen) -> None:
        super().__init__(channel.connection)
        self.channel = channel
        self.name: str = command.dest_name
        self._inbox: deque[Delivery] = deque()
        self._browses: dict[int, list[Message]] = {}
        self._queries: deque[object] = deque()
        self.renamed: str | None = None
        self._command = command
        self._paused = False
        self._subscriptions: list[spec.HandleConsume] = []
        self._created: object = None
        self.attach()
        channel.handles[self] = None

    def attach(self) -> None:
        """Open a handle of the engine, and repeat pause and subscriptions after a loss."""
        self.forget_keys()
        if self._command.temporary:
            self._created = object()
            self.expect(self._created)
            self.keys.append(self._created)
        tag = self.new_tag()
        self.keys.append(tag)
        try:
            self.engine: EngineHandle = self.channel.engine.open_handle(
                replace(self._command, confirm_tag=tag)
            )
        except BaseException:
            self.forget_keys()
            raise
        self.channel.attached[self.engine] = self
        flow = [spec.HandleFlow(flow_pause=True)] if self._paused else []
        self.keys.extend(self.ask(command) for command in (*flow, *self._subscriptions))
        self.connection.wake_writer()

    async def opened(self) -> None:
        """Wait until the server has opened the handle."""
        try:
            await self.restore()
        except TransportLostError:
            await self.until_restored()

    async def restore(self) -> None:
        """Wait until the server has opened the handle, with its subscriptions.

        Call ``attach`` first.

        Raises:
            TransportLostError: the transport was lost again.
            HandleClosedError: the server refuses the handle.
            ChannelClosedError, ConnectionClosedError, trio.ClosedResourceError: the channel or the handle is closed.
        """
        created, *_ = await self.wait_for_keys()
        if self._command.temporary and created != self.name:
            self.renamed = self.name if self.channel.epoch else None
            self.name = created

    def lose(self) -> None:
        """Mark the transport as lost, and drop messages that the server will send again.

        Messages of unreliable subscriptions are kept, because the server does not keep them for an ACK.
        """
        self._browses.clear()
        self._queries.clear()
        if not all(each.unreliable for each in self._subscriptions):
            self._empty()
        super().lose()

    async def send(self, body: bytes | Message, name: str = "", *, confirm: bool = True, **head: Any) -> None:
        """Send a message (3.5.3).

        Args:
            body: the octets of the body, or a complete message.
            name: name of the destination, appended to the name of the handle.
            confirm: wait until the server has placed the message; on a transacted channel it is placed by the commit.
            head: fields of ``MessageHead``, if ``body`` is bytes.

        Raises:
            HandleClosedError, ChannelClosedError, ConnectionClosedError: the server refuses this message, or an earlier command.
            LocalProtocolError: a field cannot be encoded, or the body has no octets.
            trio.ClosedResourceError: the handle was closed here.

        If a connection that reconnects is lost before the server has confirmed the message, the message is sent again, and may
        be placed twice (at least once). On a restartable channel only the rest of a large message is sent then. With
        ``confirm=False`` the message is sent once, and may be lost.

        Cancelled: the message may be placed or not; if it was not written yet, it is not sent.
        """
        message = body if isinstance(body, Message) else Message(spec.MessageHead(**head), body_octets(body))
        if confirm:
            await self._answered(lambda: self._transmit(message, name))
            return
        await self.wait_for_room()
        self.engine.send(message, name)
        self.connection.wake_writer()

    def _transmit(self, message: Message, name: str) -> int:
        # The server may place a message late, for example if its store is full, so there is no timeout.
        tag = self.new_tag(bounded=False)
        try:
            self.engine.send(message, name, tag)
        except BaseException:
            self.forget(tag)
            raise
        self.connection.wake_writer()
        return tag

    async def consume(
        self,
        prefetch: int = 100,
        *,
        name: str = "",
        identifier: str = "",
        selector: bytes = b"",
        selector_type: str = "text/x-amq-headers",
        no_local: bool = False,
        unreliable: bool = False,
    ) -> None:
        """Subscribe: messages come to ``receive`` (3.5.4).

        Args:
            prefetch: how many messages may be unacknowledged, 1 to 65535.
            name: name of the destination, appended to the name of the handle.
            identifier: identifier of a durable subscription to a topic; empty for a subscription that ends with the handle.
            selector: selects messages; empty for all.
            selector_type: the MIME type of the selector.
            no_local: skip messages that this connection sent; only for topics.
            unreliable: messages are not acknowledged, and may be lost.

        Raises:
            HandleClosedError: no such destination (404), no right to use it (403), or the selector is wrong (502, 540).
            LocalProtocolError: the service does not support this.
            ChannelClosedError, ConnectionClosedError, trio.ClosedResourceError: the handle is closed.

        Cancelled: the subscription may exist or not.
        """
        check_text("selector_type", selector_type)
        command = spec.HandleConsume(
            prefetch=prefetch,
            no_local=no_local,
            unreliable=unreliable,
            dest_name=name,
            identifier=identifier,
            selector=selector,
            mime_type=selector_type if selector else "",
        )
        await self._confirmed(command)
        self._subscriptions.append(command)

    @property
    def buffered(self) -> int:
        """The number of messages that wait to be received."""
        return len(self._inbox)

    async def receive(self, *, timeout: float | None = None) -> Delivery:  # noqa: ASYNC109
        """Wait for the next message of a subscription or of a peer service, and return it.

        Args:
            timeout: seconds to wait at most; None for any time.

        Raises:
            trio_amqp10.TimedOutError: no message came within ``timeout``; none is lost. It is a ``trio.TooSlowError``.
            HandleClosedError, ChannelClosedError, ConnectionClosedError: no further message will come.
            trio.ClosedResourceError: the handle was closed here.

        Cancelled: no message is lost.
        """
        if timeout is not None:
            with time_limit(timeout, lambda: self._no_message(timeout)):
                return await self.receive()
        await trio.lowlevel.checkpoint()
        while not self._inbox:
            self.check()
            await self.wait()
        delivery = self._inbox.popleft()
        self.connection.count(-len(delivery.body))
        return delivery

    def _no_message(self, seconds: float) -> TimedOutError:
        return TimedOutError(f"no message from {self.name!r} within {seconds:g} s")

    def __aiter__(self) -> Handle:
        return self

    async def __anext__(self) -> Delivery:
        try:
            return await self.receive()
        except trio.ClosedResourceError:
            raise StopAsyncIteration from None

    async def pause(self) -> None:
        """Ask the server to stop sending messages (3.5.6).

        Errors and cancellation are those of ``consume``.
        """
        await self._confirmed(spec.HandleFlow(flow_pause=True))
        self._paused = True

    async def resume(self) -> None:
        """Ask the server to send messages again (3.5.6).

        Errors and cancellation are those of ``consume``.
        """
        await self._confirmed(spec.HandleFlow(flow_pause=False))
        self._paused = False

    async def cancel(self, identifier: str, name: str = "") -> None:
        """End a durable subscription to a topic (3.5.5).

        Errors and cancellation are those of ``consume``.
        """
        await self._confirmed(spec.HandleCancel(dest_name=name, identifier=identifier))
        self._subscriptions = [
            each for each in self._subscriptions if (each.identifier, each.dest_name) != (identifier, name)
        ]

    async def query(
        self,
        name: str = "",
        *,
        above: int = 0,
        selector: bytes = b"",
        selector_type: str = "text/x-amq-headers",
    ) -> list[range]:
        """Return the numbers of the messages in the destination, for ``browse`` (3.5.8).

        Args:
            name: name of the destination, appended to the name of the handle.
            above: return only greater numbers.
            selector, selector_type: as for ``consume``.

        The numbers are valid for this handle; after a loss of the connection call this again.

        Raises:
            HandleClosedError, LocalProtocolError, ChannelClosedError, ConnectionClosedError, trio.ClosedResourceError: as
                ``consume``.
            RemoteProtocolError: the server's list of numbers is malformed.

        Cancelled: nothing has happened.
        """
        check_text("selector_type", selector_type)
        command = spec.HandleQuery(
            message_nbr=above,
            dest_name=name,
            selector=selector,
            mime_type=selector_type if selector else "",
        )

        def ask() -> object:
            key = object()
            self.expect(key)
            self._write(command, key)
            self._queries.append(key)
            return key

        index: spec.HandleIndex = await self._answered(ask)
        return read_list(index.message_list)

    async def browse(self, number: int) -> Message:
        """Return a message without removing it from the destination (3.5.9).

        Args:
            number: a number from ``query``.

        Raises:
            NotAvailableError: the message is no longer there (310).
            HandleClosedError, ChannelClosedError, ConnectionClosedError, trio.ClosedResourceError: the handle is closed.

        Cancelled: nothing has happened.
        """
        shown: list[Message] = []

        def ask() -> int:
            tag = self.ask(spec.HandleBrowse(message_nbr=number))
            self._browses[tag] = shown
            return tag

        reply: spec.HandleReply = await self._answered(ask)
        if not shown:
            raise NotAvailableError(reply.reply_code, reply.reply_text)
        return shown[0]

    # -- arriving commands ------------------------------------------------------------------

    def take(self, arrival: Arrival) -> None:
        """Process a command of the server for this handle."""
        command: Any = arrival.command
        if arrival.message is not None:
            self._take_message(command, arrival.message)
        elif isinstance(command, spec.HandleReply):
            self._browses.pop(command.confirm_tag, None)
            self.settle(command.confirm_tag, command)
        elif isinstance(command, spec.HandleIndex):
            self.settle(self._queries.popleft(), command)
        elif isinstance(command, spec.HandleCreated):
            self.settle(self._created, command.dest_name)
        elif isinstance(command, spec.HandleClose):
            self._end(HandleClosedError(command.reply_code, command.reply_text))

    def _take_message(self, command: Any, message: Message) -> None:
        if not command.delivered and self._browses:  # its reply follows
            next(iter(self._browses.values())).append(message)
            return
        self._inbox.append(
            Delivery(
                message,
                command.message_nbr,
                command.redelivered,
                command.dest_name,
                self,
                self.channel.epoch,
            )
        )
        self.connection.count(len(message.body))
        self.wake()

    # -- close ------------------------------------------------------------------------------

    def shut(self, why: Closed | None) -> None:
        """Mark the handle as closed, and remove it from its channel."""
        self.channel.handles.pop(self, None)
        super().shut(why)

    async def aclose(self) -> None:
        """Close the handle, and wait for the server's answer (3.5.16).

        The answer comes after all replies. Messages from a queue that were not received are returned first (3.5.7), so that they
        do not count as delivery attempts.

        Cancelled: the close is written anyway.
        """
        if not self.closed_here and self.why is None:
            self._give_back()
            self._end(None)
        self.channel.attached.pop(self.engine, None)
        self._empty()
        with trio.move_on_after(self.connection.close_timeout):
            while (
                self.engine.state is HandleState.CLOSE_SENT and self.channel.engine.state is ChannelState.OPEN
            ):
                # A closed handle is not woken any more; its channel is woken for every command.
                await self.channel.wait()
        await trio.lowlevel.checkpoint()

    def _give_back(self) -> None:
        """Return unreceived messages to their queue.

        The pause before keeps the server from sending them to this handle again.
        """
        reliable = not any(each.unreliable for each in self._subscriptions)
        is_queue = self.engine.service is Service.QUEUE and not self.engine.channel.transacted
        if not (self._inbox and reliable and is_queue and self.engine.state is HandleState.OPEN):
            return
        self.engine.write(spec.HandleFlow(flow_pause=True))
        for delivery in self._inbox:
            self.engine.write(spec.HandleUnget(message_nbr=delivery.number))

    def _empty(self) -> None:
        while self._inbox:
            self.connection.count(-len(self._inbox.popleft().body))

    def __repr__(self) -> str:
        return f"<Handle {self.engine.id} {self.name!r}>"
