"""One handle of the client: send, consume, browse (RFC 006, 3.5)."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import trio

from trio_amqp10.amqp_fast import spec
from trio_amqp10.amqp_fast.message import Message
from trio_amqp10.amqp_fast.message_list import read_list
from trio_amqp10.amqp_fast.services import Service
from trio_amqp10.amqp_fast.states import ChannelState, HandleState
from trio_amqp10.errors import LocalProtocolError

from .endpoint import Endpoint
from .errors import DeliveryLostError, HandleClosedError, NotAvailableError, TransportLostError

if TYPE_CHECKING:
    from trio_amqp10.amqp_fast.events import Arrival
    from trio_amqp10.amqp_fast.handle import Handle as EngineHandle

    from .channel import Channel
    from .errors import Closed

__all__ = ["Delivery", "Handle"]


@dataclass(frozen=True, slots=True)
class Delivery:
    """A message that came by a handle.

    Attributes:
        message: its head and its body.
        number: for ``Channel.ack`` and ``unget``; 0 of a peer service.
        redelivered: whether it may have come to a client before.
        destination: the full name of the destination that it came from.
        handle: by which it came.
        epoch: that of its channel.
    """

    message: Message
    number: int
    redelivered: bool
    destination: str
    handle: Handle
    epoch: int = 0

    @property
    def body(self) -> bytes:
        """Its octets."""
        return self.message.body

    @property
    def head(self) -> spec.MessageHead:
        """Its fields."""
        return self.message.head

    def ack(self) -> None:
        """Acknowledge this message and all of the channel that came before it (3.3.3).

        Raises:
            DeliveryLostError: it came before the connection was lost, and comes again.
            ChannelClosedError, ConnectionClosedError, trio.ClosedResourceError: the channel is closed.
        """
        channel = self.handle.channel
        channel.check()
        self._check_epoch()
        channel.ack(self.number)

    def unget(self) -> None:
        """Give it back, for another client (3.5.7): before an ack that covers it.

        Raises:
            DeliveryLostError: it came before the connection was lost, and comes again.
            HandleClosedError, ConnectionClosedError, trio.ClosedResourceError: the handle is closed.
            LocalProtocolError: it did not come from a queue.
        """
        self.handle.check()
        self._check_epoch()
        self.handle.engine.write(spec.HandleUnget(message_nbr=self.number))
        self.handle.connection.wake_writer()

    def _check_epoch(self) -> None:
        if self.epoch != self.handle.channel.epoch:
            raise DeliveryLostError(
                f"message {self.number} came before the connection was lost: the server gives it out again"
            )


class Handle(Endpoint):
    """Access to a destination; made by ``Channel.open_handle``.

    If a connection that reconnects is lost, it is opened again and subscribes again. What came and was not received is dropped,
    because it comes again; but not replies of a peer service, nor what came ``unreliable``.

    Attributes:
        channel: whose it is.
        engine: the handle of the engine; another one after the connection came back.
        name: of the destination, or what the names of several begin with; of a temporary one what the server says.
        renamed: the name that a temporary destination had before the connection came back; None if it is still the first.
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
        """Open a handle of the engine; pause and subscribe as before a loss."""
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
        """Wait until the server has opened it."""
        try:
            await self.restore()
        except TransportLostError:
            await self.until_restored()

    async def restore(self) -> None:
        """Wait until the server has opened it, with its subscriptions; ``attach`` was called.

        Raises:
            TransportLostError: it is lost again.
            HandleClosedError: the server refuses it.
            ChannelClosedError, ConnectionClosedError, trio.ClosedResourceError: it is closed.
        """
        created, *_ = await self.wait_for_keys()
        if self._command.temporary and created != self.name:
            self.renamed = self.name if self.channel.epoch else None
            self.name = created

    def lose(self) -> None:
        """As of ``Endpoint``; what is not received comes again, unless the server needs no ACK for it."""
        self._browses.clear()
        self._queries.clear()
        if not all(each.unreliable for each in self._subscriptions):
            self._empty()
        super().lose()

    async def send(self, body: bytes | Message, name: str = "", *, confirm: bool = True, **head: Any) -> None:
        """Send a message (3.5.3).

        Args:
            body: its octets, or a whole message.
            name: of the destination, behind the name of the handle.
            confirm: wait until the server has placed it; on a transacted channel it is placed by the commit.
            head: fields of ``MessageHead``, if ``body`` is octets.

        Raises:
            HandleClosedError, ChannelClosedError, ConnectionClosedError: the server refuses it, or something before.
            LocalProtocolError: a field that cannot be written.
            trio.ClosedResourceError: the handle was closed here.

        If a connection that reconnects is lost before the server has confirmed it, it is sent again, and may be placed twice: at
        least once. On a restartable channel only the rest of a large message is sent then. With ``confirm=False`` it is sent once,
        and may be lost.

        Cancelled: the message may be placed or not, but for a cancellation before it is written.
        """
        message = body if isinstance(body, Message) else Message(spec.MessageHead(**head), body)
        if confirm:
            await self._answered(lambda: self._transmit(message, name))
            return
        await self.wait_for_room()
        self.engine.send(message, name)
        self.connection.wake_writer()

    def _transmit(self, message: Message, name: str) -> int:
        tag = self.new_tag(bounded=False)  # where a message is placed takes as long as it must
        try:
            self.engine.send(message, name, tag)
        except LocalProtocolError:
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
            prefetch: messages that may wait for an ack, 1 to 65535.
            name: of the destination, behind the name of the handle.
            identifier: of a durable subscription to a topic; empty for one that ends with the handle.
            selector: which messages; empty for all.
            selector_type: the mime type of the selector.
            no_local: leave out messages of this connection; of topics alone.
            unreliable: messages are not acknowledged, and may be lost.

        Raises:
            HandleClosedError: no such destination (404), no right to it (403), or the selector is wrong (502, 540).
            LocalProtocolError: the service does not take this.
            ChannelClosedError, ConnectionClosedError, trio.ClosedResourceError: it is closed.

        Cancelled: the subscription may be there or not.
        """
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
        """Messages that have come and wait to be received."""
        return len(self._inbox)

    async def receive(self) -> Delivery:
        """The next message: of a subscription, or the reply of a peer service.

        Raises:
            HandleClosedError, ChannelClosedError, ConnectionClosedError: none comes any more.
            trio.ClosedResourceError: the handle was closed here.

        Cancelled: no message is lost.
        """
        await trio.lowlevel.checkpoint()
        while not self._inbox:
            self.check()
            await self.wait()
        delivery = self._inbox.popleft()
        self.connection.count(-len(delivery.body))
        return delivery

    def __aiter__(self) -> Handle:
        return self

    async def __anext__(self) -> Delivery:
        try:
            return await self.receive()
        except trio.ClosedResourceError:
            raise StopAsyncIteration from None

    async def pause(self) -> None:
        """Have the server send no messages for now (3.5.6); errors and cancellation as of ``consume``."""
        await self._confirmed(spec.HandleFlow(flow_pause=True))
        self._paused = True

    async def resume(self) -> None:
        """Have the server send messages again (3.5.6); errors and cancellation as of ``consume``."""
        await self._confirmed(spec.HandleFlow(flow_pause=False))
        self._paused = False

    async def cancel(self, identifier: str, name: str = "") -> None:
        """End a durable subscription to a topic (3.5.5); errors and cancellation as of ``consume``."""
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
        """The numbers of the messages that wait in the destination (3.5.8), for ``browse``.

        Args:
            name: of the destination, behind the name of the handle.
            above: only numbers above this.
            selector, selector_type: as of ``consume``.

        Numbers are those of this handle: ask again after a loss of the connection.

        Raises: as ``consume``; RemoteProtocolError: the list is none.

        Cancelled: nothing has happened.
        """
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
        """A message of the destination, which stays there (3.5.9).

        Args:
            number: that ``query`` has named.

        Raises:
            NotAvailableError: it is not there any more (310).
            HandleClosedError, ChannelClosedError, ConnectionClosedError, trio.ClosedResourceError: it is closed.

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

    # -- what comes -------------------------------------------------------------------------

    def take(self, arrival: Arrival) -> None:
        """A command for this handle."""
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

    # -- the end ----------------------------------------------------------------------------

    def shut(self, why: Closed | None) -> None:
        """As of ``Endpoint``."""
        self.channel.handles.pop(self, None)
        super().shut(why)

    async def aclose(self) -> None:
        """Close it (3.5.16), and wait for the server's answer, which comes behind all replies.

        What came from a queue and was not received is given back first (3.5.7), so that no attempt to deliver it is counted.

        Cancelled: the close is written all the same.
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
                await self.channel.wait()  # which is woken for all that comes; the handle is no more
        await trio.lowlevel.checkpoint()

    def _give_back(self) -> None:
        """UNGET what waits to be received; paused, the server does not send it here again."""
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
