"""One channel of the client: handles, acknowledgements, transactions (RFC 006, 3.3)."""

from __future__ import annotations

import logging
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import trio

from trio_amqp10.amqp_fast import spec
from trio_amqp10.amqp_fast.states import ChannelState

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
    from trio_amqp10.amqp_fast.channel import Channel as EngineChannel
    from trio_amqp10.amqp_fast.handle import Handle as EngineHandle

    from .connection import Connection
    from .errors import Closed

__all__ = ["Channel"]

_log = logging.getLogger("trio_amqp10.amqp_fast")

_SERVICES = {"queue": 1, "topic": 2, "peer": 3}


class Channel(Endpoint):
    """A strictly serial stream of commands and messages; made by ``Connection.open_channel``.

    While a connection that reconnects is down, calls wait until it is back. A transacted channel does not come back with it: what
    was not committed has not happened.

    Attributes:
        engine: the channel of the engine; another one after the connection came back.
        handles: those that are open.
        attached: the same, by the engine's.
        epoch: how often the transport was lost: numbers of earlier messages mean nothing now.
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
        """Open a channel of the engine."""
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
        """Wait until the server has opened it."""
        try:
            await self.wait_for_keys()
        except TransportLostError:
            await self.until_restored()
        self._is_open = True

    async def restore(self) -> None:
        """Wait until the server has opened it again, and its handles with their subscriptions; ``attach`` was called.

        Raises:
            TransportLostError: it is lost again.
            ChannelClosedError, ConnectionClosedError, trio.ClosedResourceError: it is closed.
        """
        handles = list(self.handles)
        for handle in handles:
            handle.attach()
        await self.wait_for_keys()
        for handle in handles:
            try:
                await handle.restore()
            except (HandleClosedError, trio.ClosedResourceError) as refusal:
                _log.warning("%r could not be brought back: %s", handle, refusal)

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
            name: of a destination, or what the names of several begin with; empty for all, or for a temporary one that the
                server is to name.
            service: which service the destination is of.
            producer, consumer, browser: what the handle is for; a peer service has none of these.
            temporary: make a queue or a topic that goes with the channel.
            mime_type, encoding: of messages that do not say theirs.

        Raises (on entering):
            HandleClosedError: the server refuses it.
            ChannelClosedError, ConnectionClosedError, trio.ClosedResourceError: the channel is closed.
            LocalProtocolError: no such service, or the service has no such access.
        """
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
            DeliveryLostError: the connection is down, and with it all that this could name.
            ChannelClosedError, ConnectionClosedError, trio.ClosedResourceError: the channel is closed.
        """
        self.check()
        if not self.connection.is_up:
            raise DeliveryLostError(f"message {number} came before the connection was lost")
        self.engine.write(spec.ChannelAck(message_nbr=number))
        self.connection.wake_writer()

    async def commit(self) -> None:
        """Place what was sent, and settle all that was received (3.3.4); the next transaction begins.

        Raises:
            ChannelClosedError: nothing of it was done.
            LocalProtocolError: the channel is not transacted.
            TransactionInDoubtError: the connection was lost before the answer: all of it is done, or nothing.
            ConnectionClosedError: it was lost before the server was asked: nothing of it is done. The channel does not come back.
            trio.ClosedResourceError: the channel was closed here.

        Cancelled: it may be done or not.
        """
        self.check()
        try:
            await self._confirmed(spec.ChannelCommit())
        except ConnectionClosedError as lost:
            raise TransactionInDoubtError(f"the answer to a commit was lost: {lost}") from lost

    async def rollback(self) -> None:
        """Drop what was sent, and give back all that was received (3.3.5); errors as of ``commit``.

        Cancelled: it is done all the same, if the command was written.
        """
        await self._confirmed(spec.ChannelRollback())

    # -- what comes -------------------------------------------------------------------------

    def _on_touch(self) -> None:
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
        self.wake_all()

    def lose(self) -> None:
        """As of ``Endpoint``, and so for its handles; a transacted channel is closed, once it is open."""
        self.epoch += 1
        if self._command.transacted and self._is_open:
            self.shut(self.connection.loss)
            return
        super().lose()
        for handle in list(self.handles):
            handle.lose()

    def wake_all(self) -> None:
        """The connection is back: what waits on the channel, or on a handle of it, goes on."""
        for handle in list(self.handles):
            handle.wake()
        self.wake()

    def shut(self, why: Closed | None) -> None:
        """As of ``Endpoint``; its handles are closed too."""
        self.connection.channels.pop(self, None)
        super().shut(why)
        for handle in list(self.handles):
            handle.shut(why)

    # -- the end ----------------------------------------------------------------------------

    async def aclose(self) -> None:
        """Close it (3.3.7), and wait for the server's answer; a transaction is rolled back.

        Cancelled: the close is written all the same.
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
