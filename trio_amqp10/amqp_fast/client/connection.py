"""One connection of the client (RFC 006, 3.2)."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

import trio

from trio_amqp10.amqp_fast import spec
from trio_amqp10.amqp_fast.events import (
    Challenged,
    ChannelFailed,
    ConnectionClosed,
    ConnectionLost,
    ConnectionOpened,
    HandleFailed,
)
from trio_amqp10.errors import RemoteProtocolError, SecurityError
from trio_amqp10.net.pump import READ_SIZE, Pump
from trio_amqp10.net.waiters import Waiter
from trio_amqp10.peer.recovery_events import Changes

from .channel import Channel
from .endpoint import Opening
from .errors import ChannelClosedError, ConnectionClosedError, HandleClosedError, anew

if TYPE_CHECKING:
    from trio_amqp10.amqp_fast.channel import Channel as EngineChannel
    from trio_amqp10.amqp_fast.engine import Engine
    from trio_amqp10.amqp_fast.events import Event
    from trio_amqp10.peer.recovery_base import RecoveryBase

__all__ = ["Connection"]

_BUFFER: Final = 4 * 1024 * 1024
"""Octets of messages that were not received yet, above which the transport is not read."""


class Connection(Waiter, trio.abc.AsyncResource):
    """One connection; made by ``open_connection``.

    Attributes:
        engine, pump: of the transport that there is now, or was last.
        close_timeout: seconds to wait for the server's answer when something is closed.
        recovery: brings it back; None without ``reconnect``.
        channels: those that are open.
        attached: the same, by the engine's.
        loss: why the transport was lost last; None if it never was.
        why: why it is gone for good; None while it is not, and after our own close.
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
        self._may_say_password = False
        self._closed_here = False
        self._failure: Exception | None = None
        self._over = True
        self._opened = False
        self._responded = False
        self._expected = 0
        self._held = 0

    # -- what a program does ----------------------------------------------------------------

    def open_channel(self, *, transacted: bool = False, restartable: bool = False) -> Opening[Channel]:
        """Open a channel: ``async with connection.open_channel() as channel`` (3.3.2).

        Args:
            transacted: what is sent and acknowledged counts from ``Channel.commit`` on.
            restartable: a large message that was broken off goes on where it was when it is sent again.

        Raises (on entering):
            ChannelClosedError: the server refuses it.
            ConnectionClosedError: the connection is gone.
            LocalProtocolError: the server bears no more channels.
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
        """Iterate over losses and returns of a connection that reconnects; see ``Change``. Ends with the connection.

        Args:
            attempts: report each attempt to dial that fails, too; those in a row that were not read yet are one change.
        """
        return Changes(ended=True) if self.recovery is None else self.recovery.changes(attempts=attempts)

    def ping(self) -> None:
        """Have the server answer (3.2.7): it is alive if octets come. Nothing happens while the connection is down.

        Raises:
            ConnectionClosedError, trio.ClosedResourceError: the connection is closed.
        """
        self.check()
        if self.is_up:
            self.engine.ping()
            self.wake_writer()

    async def wait_closed(self) -> None:
        """Wait until the connection is over for good.

        Raises:
            ConnectionClosedError: not by our own close.

        Cancelled: nothing has happened.
        """
        await trio.lowlevel.checkpoint()
        while not self._closed_here and self.why is None:
            await self.wait()
        if self.why is not None:
            raise anew(self.why)

    async def aclose(self) -> None:
        """Close it, and all its channels (3.2.9); what was written before goes out first.

        Cancelled: the close gets a second to be written.
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

    # -- what its channels use --------------------------------------------------------------

    def check(self) -> None:
        """Raise why it is closed; nothing if it is not."""
        if self._closed_here:
            raise trio.ClosedResourceError("the connection is closed")
        if self.why is not None:
            raise anew(self.why)

    def wake_writer(self) -> None:
        """There is something to write."""
        self.pump.wake_writer()

    def expect(self, more: int) -> None:
        """So many more calls wait for the server: while there are any, it is read."""
        self._expected += more
        self._update_brake()

    def count(self, octets: int) -> None:
        """So many more octets of messages wait to be received."""
        self._held += octets
        self._update_brake()

    def _update_brake(self) -> None:
        braked = self._held > _BUFFER and not self._expected and not self._closed_here
        if self.engine.braked is not braked:
            self.engine.braked = braked
            self.wake_writer()

    # -- one transport ----------------------------------------------------------------------

    def begin(
        self, engine: Engine, stream: trio.abc.Stream, nursery: trio.Nursery, *, may_say_password: bool
    ) -> None:
        """Have a transport, on which the negotiation begins."""
        self.engine = engine
        self.attached.clear()
        self.is_up = self._over = self._opened = self._responded = False
        self._failure = self.why = None
        self._may_say_password = may_say_password
        self.pump = Pump(engine, stream, self._on_event, self._on_over)
        self.pump.start(nursery)
        self.wake_writer()

    def on_ready(self) -> None:
        """The server has opened it, and what was open is open again: channels can be used."""
        self.is_up = not self._over
        for channel in list(self.channels):
            channel.wake_all()
        self.wake()

    def fail(self, failure: Exception) -> None:
        """It will not come back."""
        why = failure
        if not isinstance(why, ConnectionClosedError):
            why = ConnectionClosedError(None, str(failure))
            why.__cause__ = failure
        self.why = why
        for channel in list(self.channels):
            channel.shut(why)
        self.wake()

    async def opened(self) -> None:
        """Wait until the server has opened it.

        Raises:
            SecurityError: no mechanism fits, or the login was refused.
            ConnectionClosedError: the server closed it, or was lost.
            RemoteProtocolError: what answers does not speak AMQP/Fast.
        """
        while not self._opened:
            if self._failure is not None:
                raise self._failure
            if self._over:
                assert self.loss is not None
                raise anew(self.loss)
            await self.wait()
        self.pump.read_size = READ_SIZE

    def _on_challenge(self, event: Challenged) -> None:
        offered = event.challenge.mechanisms.split()
        now = trio.current_time()
        if self._login is None and "NONE" in offered:
            mechanism, responses = "NONE", {}
        elif self._login is not None and "PLAIN" in offered and self._may_say_password:
            user, password = self._login
            mechanism, responses = "PLAIN", {"LOGIN": user, "PASSWORD": password}
        else:
            wanted = "NONE" if self._login is None else "PLAIN, on a private transport"
            self._failure = SecurityError(f"the server offers {' '.join(offered)!r}; this can be {wanted}")
            self.engine.close(now, 503, "no mechanism")
            self.wake()
            return
        self._responded = True
        self.pump.feed(self.engine.respond, mechanism, responses, now)

    # -- what the engine and the pump report ------------------------------------------------

    def _on_event(self, event: Event) -> None:
        if isinstance(event, Challenged):
            self._on_challenge(event)
        elif isinstance(event, ConnectionOpened):
            self._opened = True
            self.wake()
        elif isinstance(event, ConnectionClosed):
            self._go_down(ConnectionClosedError(event.close.reply_code, event.close.reply_text))
        elif isinstance(event, ConnectionLost):
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
            silent = why.code is None and self._responded and not self._opened
            if silent and self._failure is None and self.recovery is None:
                self._failure = SecurityError("the server ended the connection: the login was refused")
            self.loss = why
            if self.recovery is not None and self.recovery.covers(why):
                for channel in list(self.channels):
                    channel.lose()
            else:
                self.fail(why)
        self.wake()

    def __repr__(self) -> str:
        return f"<Connection {self.engine.state.name}, {len(self.channels)} channels>"
