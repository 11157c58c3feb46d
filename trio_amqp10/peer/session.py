"""A session for programs: an order of transfers, and its links (2.5)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import trio

from trio_amqp10.engine.events import SessionEnded
from trio_amqp10.engine.states import SessionState
from trio_amqp10.errors import Condition, LocalProtocolError
from trio_amqp10.net.waiters import Waiter
from trio_amqp10.spec.transport import Error

from .errors import LinkRefusedError, SessionEndedError, describe
from .link_options import ReceiverOptions, SenderOptions
from .option_signatures import takes_on
from .receiver import Receiver, open_receiver
from .sender import Sender, open_sender
from .statistics import session_statistics

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from trio_amqp10.engine.session import Session as EngineSession
    from trio_amqp10.patterns.transaction import TransactionOpening

    from .connection import Connection
    from .link import Link
    from .link_opening import LinkOpening
    from .statistics import SessionStatistics

__all__ = ["Session", "SessionOpening"]


class Session(Waiter, trio.abc.AsyncResource):
    """One session of a connection. Its links share windows, and end when it ends.

    Attributes:
        connection: that it is on.
        opening: links that are being opened on it, and were not answered yet.
    """

    __slots__ = ("_closed", "_ended", "connection", "engine", "on_end", "opening")

    def __init__(self, connection: Connection, engine: EngineSession) -> None:
        super().__init__()
        self.connection: Connection = connection
        self.engine: EngineSession = engine
        engine.owner = self
        self._closed = False
        self._ended: SessionEnded | None = None
        self.on_end: dict[object, Callable[[], object]] | None = (
            None  # called when the peer ends it; by what for
        )
        self.opening: dict[Link[Any], None] = {}

    def wake(self) -> None:
        """As of ``Waiter``; the end of the session is reported so, too."""
        super().wake()
        if self.engine.state is SessionState.ENDED:
            self.connection.note_ended(self.engine)

    @property
    def is_over(self) -> bool:
        """Whether either end has ended it; one that its connection brings back is not over."""
        if self.was_ended:
            return True
        return self.engine.state is SessionState.ENDED and not self._comes_back

    @property
    def was_ended(self) -> bool:
        """Whether somebody has ended it, and not only the loss of the transport."""
        return self._closed or self._ended is not None

    @property
    def _comes_back(self) -> bool:
        recovery = self.connection.recovery
        return recovery is not None and not recovery.stopped and self in recovery.sessions

    def begin_anew(self) -> None:
        """The connection is back: so is this, if the peer has room for it."""
        try:
            engine = self.connection.engine.session()
            engine.owner = self
            engine.begin()
        except LocalProtocolError as failure:
            error = Error(condition=Condition.RESOURCE_LIMIT_EXCEEDED.value, description=str(failure))
            self.on_ended(SessionEnded(self.engine, error))
        else:
            self.engine = engine

    @property
    def closed_here(self) -> bool:
        """Whether it was we who ended it, or the connection."""
        return self._closed or self.connection.closed_here

    def on_ended(self, event: SessionEnded) -> None:
        """The engine tells that the session is over."""
        self._ended = event
        for call in tuple((self.on_end or {}).values()):
            call()
        links = self._forget()
        blamed = bool(self.opening) or any(not link.is_answered for link in links)
        for link in links:
            link.on_session_ended(event.error, blamed=blamed)
        self.wake()

    def _forget(self) -> list[Link[Any]]:
        """This is over; returns the links that the connection would have attached again."""
        recovery = self.connection.recovery
        if recovery is None:
            return []
        recovery.forget_session(self)
        return [link for link in recovery.links if link.session is self]

    def _close(self) -> None:
        self._closed = True
        for link in self._forget():
            link.uncover()

    def cause(self, *, opening: bool = False) -> Exception | None:
        """Why the session ended, for a link on it; None while it lives or where it ended without an error."""
        if self._ended is not None and self._ended.error is not None:
            error = self._ended.error
            if opening:
                # A peer that ends the whole session over one address (RabbitMQ 4.0 does).
                return LinkRefusedError(f"the peer ended the session, {describe(error)}", error)
            return SessionEndedError(f"the session was ended, {describe(error)}", error)
        if self._ended is not None:
            return SessionEndedError("the session was ended by the peer") if opening else None
        if opening and self.connection.closed:
            return self.connection.reason()
        return self.connection.cause()

    def check_alive(self) -> None:
        """Raise what ended the session, if something did."""
        if self.closed_here:
            raise trio.ClosedResourceError("this session was closed here")
        if self.is_over:
            if self._ended is None:
                raise self.connection.reason()
            raise self.cause() or SessionEndedError("the session was ended by the peer")

    @takes_on(SenderOptions)
    def open_sender(self, options: SenderOptions) -> LinkOpening[Sender]:
        """As ``Connection.open_sender``, on this session."""
        return open_sender(self.connection, options, self)

    @takes_on(ReceiverOptions)
    def open_receiver(self, options: ReceiverOptions) -> LinkOpening[Receiver]:
        """As ``Connection.open_receiver``, on this session."""
        return open_receiver(self.connection, options, self)

    def open_transaction(self, *, keep: bool = False) -> TransactionOpening:
        """As ``Connection.open_transaction``, with its control link on this session."""
        from trio_amqp10.patterns.transaction import open_transaction

        return open_transaction(self.connection, session=self, keep=keep)

    def statistics(self) -> SessionStatistics:
        """What it has done since it was begun last, and where it stands: live figures by name."""
        return session_statistics(self.engine)

    async def begun(self) -> None:
        """Wait until the peer has begun it too. Cancelled: nothing has happened."""
        while self.engine.remote is None:
            self.check_alive()
            await self.wait()
        if self.cause() is not None:
            self.check_alive()

    def abandon(self) -> None:
        """It is not wanted any more: end it, whatever the peer says."""
        self._close()
        self.engine.end()

    async def aclose(self, error: Error | None = None) -> None:
        """End the session and its links; waits for the answer at most ``close_timeout`` seconds (2.5.2).

        Cancelled: the end is on its way all the same, only the answer is not awaited.
        """
        if self._closed:
            await trio.lowlevel.checkpoint()
            return
        self._close()
        self.engine.end(error)
        self.wake()
        with trio.move_on_after(self.connection.close_timeout):
            await trio.lowlevel.checkpoint()
            while self.engine.state is not SessionState.ENDED:
                await self.wait()


class SessionOpening:
    """A session that is yet to begin: enter it with ``async with``."""

    __slots__ = ("_connection", "_session")

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def __aenter__(self) -> Session:
        await trio.lowlevel.checkpoint()
        await self._connection.wait_recovered()
        self._session = self._connection.new_session()
        try:
            await self._session.begun()
        except BaseException:
            self._session.abandon()
            raise
        return self._session

    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        await self._session.aclose()
