"""A channel of the client: handles, acknowledgements, transactions (RFC 006, 3.3)."""

from __future__ import annotations

import logging
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import trio

from trio_amqp10.amqp_fast import spec
from trio_amqp10.amqp_fast.engine.states import ChannelState
from trio_amqp10.core.arguments import check_text

from .endpoint import Endpoint, Opening
from .errors import (
    ChannelClosedError,
    ConnectionClosedError,
    DeliveryLostError,
    HandleClosedError,
    TransactionInDoubtError,
    TransportLostError,
)
from .handle import Handle

if TYPE_CHECKING:
    from trio_amqp10.amqp_fast.engine.channel import Channel as EngineChannel
    from trio_amqp10.amqp_fast.engine.handle import Handle as EngineHandle

    from .connection import Connection
    from .errors import Closed

_log = logging.getLogger("trio_amqp10.amqp_fast")

_SERVICES = {"queue": 1, "topic": 2, "peer": 3}


class Channel(Endpoint):
    """A strictly serial stream of commands and messages.

    Create a channel with ``Connection.open_channel``. While a connection that reconnects is down, calls wait until it is back. A
    transacted channel does not survive the loss of its connection: its uncommitted work is discarded.

    Attributes:
        engine: the channel of the engine; replaced after the connection was restored.
        handles: the open handles.
        attached: the open handles, by the engine's handles.
        epoch: how often the transport was lost; message numbers of earlier epochs are no longer valid.
    """

    def __init__(self, connection: Connection, command: spec.ChannelOpen) -> None:
        super().__init__(connection)
        self.handles: dict[Handle, None] = {}
        self.attached: dict[EngineHandle, Handle] = {}
        self.epoch: int = 0
        self._command = command
        self._is_open = False
        connection.channels[self] = None
        self.attach()

    def attach(self) -> None:
        """Open a channel of the current engine."""
        connection = self.connection
        self.forget_keys()
        tag = self.new_tag()
        self.keys.append(tag)
        try:
            self.engine: EngineChannel = connection.engine.open_channel(
                replace(self._command, confirm_tag=tag)
            )
        except BaseException:
            self.forget_keys()
            connection.channels.pop(self, None)
            raise
        self.engine.on_touch = self._on_touch
        self.attached.clear()
        connection.attached[self.engine] = self
        connection.wake_writer()

    async def opened(self) -> None:
        """Wait until the server has opened the channel."""
        try:
            await self.wait_for_keys()
        except TransportLostError:
            await self.until_restored()
        self._is_open = True

    async def restore(self) -> None:
        """Wait until the server has opened the channel and its handles again.

        Call ``attach`` first. The subscriptions of the handles are restored too. A handle that the server refuses is logged and
        closed.

        Raises:
            TransportLostError: the transport was lost again.
            ChannelClosedError, ConnectionClosedError, trio.ClosedResourceError: the channel is closed.
        """
        handles = list(self.handles)
        for handle in handles:
            handle.attach()
        await self.wait_for_keys()
        for handle in handles:
            try:
                await handle.restore()
            except (HandleClosedError, trio.ClosedResourceError) as refusal:
                _log.warning("%r could not be restored: %s", handle, refusal)

    def open_handle(
        self,
        name: str = "",
        *,
        service: Literal["queue", "topic", "peer"] = "queue",
        producer: bool = True,
        consumer: bool = True,
        browser: bool = True,
        temporary: bool = False,
        mime_type: str = "",
        encoding: str = "",
    ) -> Opening[Handle]:
        """Open a handle: ``async with channel.open_handle("orders") as handle`` (3.5.2).

        Args:
            name: name of a destination, or the common prefix of several names. Empty for all destinations, or for a temporary
                destination that the server will name.
            service: the service of the destination.
            producer, consumer, browser: the access that the handle needs; a peer service has none of these.
            temporary: create a queue or a topic that is deleted with the channel.
            mime_type, encoding: defaults for messages without these fields.

        Raises (on entering):
            HandleClosedError: the server refuses the handle.
            ChannelClosedError, ConnectionClosedError, trio.ClosedResourceError: the channel is closed.
            LocalProtocolError: the service does not exist, or does not offer such access.
        """
        check_text("service", service)
        is_peer = service == "peer"
        command = spec.HandleOpen(
            service_type=_SERVICES.get(service, 0),
            producer=producer and not is_peer,
            consumer=consumer and not is_peer,
            browser=browser and not is_peer,
            temporary=temporary,
            dest_name=name,
            mime_type=mime_type,
            encoding=encoding,
        )
        return Opening(self.wait_for_room, partial(Handle, self, command))

    def ack(self, number: int) -> None:
        """Acknowledge all messages of the channel up to this number (3.3.3).

        Raises:
            DeliveryLostError: the connection is down; the server will send the messages again.
            ChannelClosedError, ConnectionClosedError, trio.ClosedResourceError: the channel is closed.
        """
        self.check()
        if not self.connection.is_up:
            raise DeliveryLostError(
                f"message {number} was received before the connection was lost: the server sends it again"
            )
        self.engine.write(spec.ChannelAck(message_nbr=number))
        self.connection.wake_writer()

    async def commit(self) -> None:
        """Commit the transaction, and begin the next one (3.3.4).

        The server places the sent messages and settles the acknowledged ones.

        Raises:
            ChannelClosedError: the server refused, and did nothing of the transaction.
            LocalProtocolError: the channel is not transacted.
            TransactionInDoubtError: the connection was lost before the answer: the server did all of the transaction, or nothing.
            ConnectionClosedError: the connection was lost before the commit was sent: nothing was done. The channel is not
                restored.
            trio.ClosedResourceError: the channel was closed here.

        Cancelled: the transaction may be committed or not.
        """
        self.check()
        try:
            await self._confirmed(spec.ChannelCommit())
        except ConnectionClosedError as lost:
            raise TransactionInDoubtError(f"the answer to a commit was lost: {lost}") from lost

    async def rollback(self) -> None:
        """Roll back the transaction: drop sent messages, return received ones (3.3.5).

        Raises the errors of ``commit``.

        Cancelled: the transaction is rolled back anyway if the command was already written.
        """
        await self._confirmed(spec.ChannelRollback())

    # -- arriving commands ------------------------------------------------------------------

    def _on_touch(self) -> None:
        self._take_arrivals()
        self.wake_all()

    def _take_arrivals(self) -> None:
        while (arrival := self.engine.next_arrival()) is not None:
            command: Any = arrival.command
            if arrival.handle is not None:
                handle = self.attached.get(arrival.handle)
                if handle is not None:
                    handle.take(arrival)
            elif isinstance(command, spec.ChannelReply):
                self.settle(command.confirm_tag, command)
            elif isinstance(command, spec.ChannelClose):
                self._end(ChannelClosedError(command.reply_code, command.reply_text))

    def lose(self) -> None:
        """Mark the transport as lost, also for the handles.

        A transacted channel that was already open is closed, because its transaction cannot be continued.
        """
        self._take_arrivals()  # before the epoch changes, because each delivery keeps the current epoch
        self.epoch += 1
        if self._command.transacted and self._is_open:
            self.shut(self.connection.loss)
            return
        super().lose()
        for handle in list(self.handles):
            handle.lose()

    def wake_all(self) -> None:
        """Wake all tasks that wait on the channel or on one of its handles."""
        for handle in list(self.handles):
            handle.wake()
        self.wake()

    def shut(self, why: Closed | None) -> None:
        """Mark the channel and its handles as closed."""
        self.connection.channels.pop(self, None)
        super().shut(why)
        for handle in list(self.handles):
            handle.shut(why)

    # -- close ------------------------------------------------------------------------------

    async def aclose(self) -> None:
        """Close the channel, and wait for the server's answer (3.3.7).

        An uncommitted transaction is rolled back.

        Cancelled: the close is written anyway.
        """
        if not self.closed_here and self.why is None:
            self._end(None)
        with trio.move_on_after(self.connection.close_timeout):
            while self.engine.state is ChannelState.CLOSE_SENT:
                await self.wait()
        self.connection.attached.pop(self.engine, None)
        await trio.lowlevel.checkpoint()

    def __repr__(self) -> str:
        return f"<Channel {self.engine.id}>"
