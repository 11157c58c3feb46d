"""A session as a program uses it: ordered transfers, and links (2.5)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import trio

from trio_amqp10.amqp10.engine.events import SessionEnded
from trio_amqp10.amqp10.engine.states import SessionState
from trio_amqp10.amqp10.spec.transport import Error
from trio_amqp10.core.errors import Condition, LocalProtocolError
from trio_amqp10.net.option_signatures import takes_on
from trio_amqp10.net.waiters import Waiter

from .errors import LinkRefusedError, SessionEndedError, describe
from .link_options import ReceiverOptions, SenderOptions
from .receiver import Receiver, open_receiver
from .sender import Sender, open_sender
from .statistics import session_statistics

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from trio_amqp10.amqp10.engine.session import Session as EngineSession

    from .connection import Connection
    from .link import Link
    from .link_opening import LinkOpening
    from .statistics import SessionStatistics
    from .transaction import TransactionOpening


class Session(Waiter, trio.abc.AsyncResource):
    """One session of a connection. Its links share its windows, and end with it.

    Attributes:
        connection: the connection of the session.
        opening: how many links are being opened on it, and were not answered yet.
    """

    __slots__ = ("_closed", "_ended", "connection", "engine", "on_end", "opening")

    def __init__(self, connection: Connection, engine: EngineSession) -> None:
        super().__init__()
        self.connection: Connection = connection
        self.engine: EngineSession = engine
        engine.owner = self
        self._closed = False
        self._ended: SessionEnded | None = None
        # Called when the peer ends the session; by the object that needs the call.
        self.on_end: dict[object, Callable[[], object]] | None = None
        self.opening: int = 0

    def wake(self) -> None:
        """Wake the waiting tasks, and note the end of the session."""
        super().wake()
        if self.engine.state is SessionState.ENDED:
            self.connection.note_ended(self.engine)

    @property
    def is_over(self) -> bool:
        """Whether either end has ended the session.

        A session that its connection will restore is not over.
        """
        if self.was_ended:
            return True
        return self.engine.state is SessionState.ENDED and not self._comes_back

    @property
    def was_ended(self) -> bool:
        """Whether either end has ended it, rather than the loss of the transport."""
        return self._closed or self._ended is not None

    @property
    def _comes_back(self) -> bool:
        recovery = self.connection.recovery
        return recovery is not None and not recovery.stopped and self in recovery.sessions

    def begin_again(self) -> None:
        """Begin the session on the restored connection, if the peer has room for it."""
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
        """Whether this end has ended the session or its connection."""
        return self._closed or self.connection.closed_here

    def on_ended(self, event: SessionEnded) -> None:
        """Note that the peer has ended the session."""
        self._ended = event
        for call in tuple((self.on_end or {}).values()):
            call()
        links = self._forget()
        blamed = self.opening > 0 or any(not link.is_answered for link in links)
        for link in links:
            link.on_session_ended(event.error, blamed=blamed)
        self.wake()

    def _forget(self) -> list[Link[Any]]:
        """Stop restoring the session; return its links that would have been restored."""
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
        """Return the reason why the session ended, for a link on it.

        None while it lives, or if it ended without an error. ``opening``: whether the link was not open yet.
        """
        if self._ended is not None and self._ended.error is not None:
            error = self._ended.error
            if opening:
                # RabbitMQ 4.0 refuses a link to an unknown address by ending the session.
                return LinkRefusedError(f"the peer ended the session, {describe(error)}", error)
            return SessionEndedError(f"the session was ended, {describe(error)}", error)
        if self._ended is not None:
            return SessionEndedError("the session was ended by the peer") if opening else None
        if opening and self.connection.closed:
            return self.connection.reason()
        return self.connection.cause()

    def check_alive(self) -> None:
        """Raise the error that ended the session, if it has ended."""
        if self.closed_here:
            raise trio.ClosedResourceError("this session was closed here")
        if self.is_over:
            if self._ended is None:
                raise self.connection.reason()
            raise self.cause() or SessionEndedError("the session was ended by the peer")

    @takes_on(SenderOptions)
    def open_sender(self, options: SenderOptions) -> LinkOpening[Sender]:
        """Open a sender on this session, as ``Connection.open_sender``."""
        return open_sender(self.connection, options, self)

    @takes_on(ReceiverOptions)
    def open_receiver(self, options: ReceiverOptions) -> LinkOpening[Receiver]:
        """Open a receiver on this session, as ``Connection.open_receiver``."""
        return open_receiver(self.connection, options, self)

    def open_transaction(self, *, keep: bool = False) -> TransactionOpening:
        """Open a transaction, as ``Connection.open_transaction``.

        Its control link is on this session.
        """
        from .transaction import open_transaction

        return open_transaction(self.connection, session=self, keep=keep)

    def statistics(self) -> SessionStatistics:
        """Return figures of the session: its state, and totals since it was last begun."""
        return session_statistics(self.engine)

    async def begun(self) -> None:
        """Wait until the peer has begun the session too. Cancelled: nothing has happened."""
        while self.engine.remote is None:
            self.check_alive()
            await self.wait()
        if self.cause() is not None:
            self.check_alive()

    def abandon(self) -> None:
        """End the session without waiting for the peer."""
        self._close()
        self.engine.end()

    async def aclose(self, error: Error | None = None) -> None:
        """End the session and its links (2.5.2).

        Waits for the peer's answer at most ``close_timeout`` seconds.

        Cancelled: the end is written anyway, only the answer is not awaited.
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
    """A session that has not begun yet: enter it with ``async with``."""

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
