"""One connection of the client (RFC 006, 3.2)."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

import trio

from trio_amqp10.amqp_fast import spec
from trio_amqp10.amqp_fast.engine.events import (
    Challenged,
    ChannelFailed,
    ConnectionClosed,
    ConnectionLost,
    ConnectionOpened,
    HandleFailed,
)
from trio_amqp10.core.errors import RemoteProtocolError, SecurityError
from trio_amqp10.net.errors import fresh_copy
from trio_amqp10.net.pump import READ_SIZE, Pump
from trio_amqp10.net.recovery_events import Changes
from trio_amqp10.net.waiters import Waiter

from .channel import Channel
from .endpoint import Opening
from .errors import ChannelClosedError, ConnectionClosedError, HandleClosedError

if TYPE_CHECKING:
    from trio_amqp10.amqp_fast.engine.channel import Channel as EngineChannel
    from trio_amqp10.amqp_fast.engine.engine import Engine
    from trio_amqp10.amqp_fast.engine.events import Event
    from trio_amqp10.net.recovery_base import RecoveryBase

_BUFFER: Final = 4 * 1024 * 1024
"""Octets of unreceived messages above which the transport is not read."""


class Connection(Waiter, trio.abc.AsyncResource):
    """One connection, as returned by ``open_connection``.

    Attributes:
        engine, pump: engine and pump of the current, or latest, transport.
        close_timeout: seconds to wait for the server's answer when something is closed.
        recovery: restores the connection after a loss; None without ``reconnect``.
        channels: the open channels.
        attached: the open channels, by the engine's channels.
        loss: the reason why the transport was last lost; None if it never was.
        why: the reason why the connection is closed for good; None while it is not, and after ``aclose``.
        is_up: whether channels can be used now.
    """

    def __init__(self, login: tuple[str, str] | None, *, close_timeout: float) -> None:
        super().__init__()
        self.engine: Engine
        self.pump: Pump
        self.close_timeout = close_timeout
        self.recovery: RecoveryBase[Any] | None = None
        self.channels: dict[Channel, None] = {}
        self.attached: dict[EngineChannel, Channel] = {}
        self.loss: ConnectionClosedError | None = None
        self.why: ConnectionClosedError | None = None
        self.is_up: bool = False
        self._login = login
        self._may_send_password = False
        self._closed_here = False
        self._failure: Exception | None = None
        self._over = True
        self._opened = False
        self._expected = 0
        self._held = 0

    # -- for programs -----------------------------------------------------------------------

    def open_channel(self, *, transacted: bool = False, restartable: bool = False) -> Opening[Channel]:
        """Open a channel: ``async with connection.open_channel() as channel`` (3.3.2).

        Args:
            transacted: sent messages and acknowledgements take effect with ``Channel.commit``.
            restartable: if the transfer of a large message was interrupted, sending it again continues at that point.

        Raises (on entering):
            ChannelClosedError: the server refuses the channel.
            ConnectionClosedError: the connection is closed or lost for good.
            LocalProtocolError: the server allows no more channels.
            trio.ClosedResourceError: the connection was closed here.
        """
        command = spec.ChannelOpen(transacted=transacted, restartable=restartable)
        return Opening(self._ready, partial(Channel, self, command))

    async def _ready(self) -> None:
        await trio.lowlevel.checkpoint()
        while True:
            self.check()
            if self.is_up:
                return
            await self.wait()

    def changes(self, *, attempts: bool = False) -> Changes:
        """Iterate over the losses and returns of a connection that reconnects.

        Iteration ends with the connection. See ``Change``.

        Args:
            attempts: also report each failed attempt to dial; successive failures that were not read yet are merged into one
                change.
        """
        return Changes(ended=True) if self.recovery is None else self.recovery.changes(attempts=attempts)

    def ping(self) -> None:
        """Ask the server to answer (3.2.7): any octets from it prove that it is alive.

        Does nothing while the connection is down.

        Raises:
            ConnectionClosedError, trio.ClosedResourceError: the connection is closed.
        """
        self.check()
        if self.is_up:
            self.engine.ping()
            self.wake_writer()

    async def wait_closed(self) -> None:
        """Wait until the connection is closed for good.

        Raises:
            ConnectionClosedError: the server closed the connection, or it was lost.

        Cancelled: nothing has happened.
        """
        await trio.lowlevel.checkpoint()
        while not self._closed_here and self.why is None:
            await self.wait()
        if self.why is not None:
            raise fresh_copy(self.why)

    async def aclose(self) -> None:
        """Close the connection and all its channels (3.2.9).

        What was written before is sent first.

        Cancelled: the close gets one second to be written.
        """
        if not self._closed_here:
            if self.recovery is not None:
                self.recovery.stop()
            self._closed_here = True
            self.is_up = False
            for channel in list(self.channels):
                channel.shut(None)
            self.engine.braked = False
            self.engine.close(trio.current_time())
            self.wake_writer()
            self.wake()
        await self.pump.finish(self.close_timeout + 1.0)

    # -- for channels -----------------------------------------------------------------------

    def check(self) -> None:
        """Raise the reason why the connection is closed, if it is closed."""
        if self._closed_here:
            raise trio.ClosedResourceError("the connection is closed")
        if self.why is not None:
            raise fresh_copy(self.why)

    def wake_writer(self) -> None:
        """Wake the task that writes, because the engine has output."""
        self.pump.wake_writer()

    def expect(self, more: int) -> None:
        """Add to the number of calls that wait for the server.

        While any call waits, the transport is read even if the program receives slowly.
        """
        self._expected += more
        self._update_brake()

    def count(self, octets: int) -> None:
        """Add to the octets of messages that the program has not received yet."""
        self._held += octets
        self._update_brake()

    def _update_brake(self) -> None:
        braked = self._held > _BUFFER and not self._expected and not self._closed_here
        if self.engine.braked is not braked:
            self.engine.braked = braked
            self.wake_writer()

    # -- the current transport --------------------------------------------------------------

    def begin(
        self, engine: Engine, stream: trio.abc.Stream, nursery: trio.Nursery, *, may_send_password: bool
    ) -> None:
        """Use ``stream`` as the transport, and begin the negotiation on it."""
        self.engine = engine
        self.attached.clear()
        self.is_up = self._over = self._opened = False
        self._failure = self.why = None
        self._may_send_password = may_send_password
        self.pump = Pump(engine, stream, self._on_event, self._on_over)
        self.pump.start(nursery)
        self.wake_writer()

    async def hang_up(self) -> None:
        """Close the current transport.

        Cancelled: a last close is written anyway, for at most one second.
        """
        await self.pump.part(partial(self.engine.close, trio.current_time()))

    def lost_to(self) -> Exception:
        """Return the reason why the last transport was lost."""
        return self.loss or ConnectionClosedError(None, "the transport ended")

    def on_ready(self) -> None:
        """Let calls continue: the connection, its channels and handles are open again."""
        self.is_up = not self._over
        for channel in list(self.channels):
            channel.wake_all()
        self.wake()

    def fail(self, failure: Exception) -> None:
        """Close the connection and its channels for good."""
        why = failure
        if not isinstance(why, ConnectionClosedError):
            why = ConnectionClosedError(None, str(failure))
            why.__cause__ = failure
        self.why = why
        for channel in list(self.channels):
            channel.shut(why)
        self.wake()

    async def opened(self) -> None:
        """Wait until the server has opened the connection.

        Raises:
            SecurityError: no mechanism fits, or the login was refused.
            ConnectionClosedError: the server closed the connection, or it was lost.
            RemoteProtocolError: the server does not speak AMQP/Fast.
        """
        # The transport may be lost in the read that opens the connection.
        while not self._opened or self._over:
            if self._failure is not None:
                raise self._failure
            if self._over:
                assert self.loss is not None
                raise fresh_copy(self.loss)
            await self.wait()
        self.pump.read_size = READ_SIZE

    def _on_challenge(self, event: Challenged) -> None:
        offered = event.challenge.mechanisms.split()
        now = trio.current_time()
        if self._login is None and "NONE" in offered:
            mechanism, responses = "NONE", {}
        elif self._login is not None and "PLAIN" in offered and self._may_send_password:
            user, password = self._login
            mechanism, responses = "PLAIN", {"LOGIN": user, "PASSWORD": password}
        else:
            wanted = (
                "NONE" if self._login is None else "PLAIN over TLS (or with allow_plaintext_password=True)"
            )
            self._failure = SecurityError(
                f"no mechanism fits: the server offers {' '.join(offered)!r}, the client can use {wanted}"
            )
            self.engine.close(now, 503, "no mechanism")
            self.wake()
            return
        self.pump.feed(self.engine.respond, mechanism, responses, now)

    # -- reports of the engine and the pump --------------------------------------------------

    def _on_event(self, event: Event) -> None:
        if isinstance(event, Challenged):
            self._on_challenge(event)
        elif isinstance(event, ConnectionOpened):
            self._opened = True
            self.wake()
        elif isinstance(event, ConnectionClosed):
            self._go_down(ConnectionClosedError(event.close.reply_code, event.close.reply_text))
        elif isinstance(event, ConnectionLost):
            if event.refuses_login and self.recovery is None:
                self._failure = self._failure or SecurityError(
                    "the server ended the connection: the login was refused"
                )
            self._go_down(ConnectionClosedError(None, event.reason))
        elif isinstance(event, ChannelFailed):
            channel = self.attached.get(event.channel)
            if channel is not None:
                channel.shut(ChannelClosedError(event.code, event.text))
        elif isinstance(event, HandleFailed):
            self._fail_handle(event)

    def _fail_handle(self, event: HandleFailed) -> None:
        channel = self.attached.get(event.handle.channel)
        handle = None if channel is None else channel.attached.get(event.handle)
        if handle is not None:
            handle.shut(HandleClosedError(event.code, event.text))

    def _on_over(self) -> None:
        failure: Any = self.pump.failure
        if isinstance(failure, RemoteProtocolError) and not self._opened:
            self._failure = self._failure or failure
        self._go_down(ConnectionClosedError(None, str(failure or "the transport ended")))

    def _go_down(self, why: ConnectionClosedError) -> None:
        if not self._over and not self._closed_here:
            self._over = True
            self.is_up = False
            self.loss = why
            if self.recovery is not None and self.recovery.covers(why):
                for channel in list(self.channels):
                    channel.lose()
            else:
                self.fail(why)
        self.wake()

    def __repr__(self) -> str:
        return f"<Connection {self.engine.state.name}, {len(self.channels)} channels>"
