"""DiallingBase: the first dial of a connection, entered with ``async with``.

Each client defines how an engine and a connection are made, and the type of a place; ``recovery_base`` dials again after a
loss. Knows no protocol.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from math import inf
from typing import TYPE_CHECKING, Any, ClassVar, Final, Generic, Protocol, TypeVar

import trio

from trio_amqp10.core.errors import AmqpError, LocalProtocolError

from .recovery_events import Change, Changes, Watchers
from .redial import Redial
from .transports import connect, is_private
from .waiters import EnteredWithAsync, check_trio

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import TracebackType

    from .backoff import Backoff
    from .recovery_base import RecoveryBase
    from .tls_options import TlsOptions
    from .transport_layers import Transport
    from .urls import Url


class DialledConnection(Protocol):
    """The methods that ``DiallingBase`` calls on a connection."""

    recovery: Any

    def on_ready(self) -> None:
        """Note that the first dial has succeeded."""
        ...

    async def aclose(self) -> None:
        """Close the connection."""
        ...


C = TypeVar("C", bound=DialledConnection)
P = TypeVar("P")

_SILENT: Final = "; the program there may not be a server of AMQP"
_ADVICE: Final = {
    "is not TLS": "; use a scheme without TLS, such as amqp://, if that port has none",
    "took too long": _SILENT,
    "no answer within": _SILENT,
}
"""Advice about a failed attempt to dial, by a part of its text."""


class DiallingBase(EnteredWithAsync, ABC, Generic[C, P]):
    """A connection that is made on entering. Subclass it with the abstract methods.

    Args:
        places: where to dial, tried in turn; a connection on the program's own stream has one place too.
        stream: the program's own stream, to be used instead of dialling, or a function that makes one for each dial; or None.
        backoff: when to dial again; None for never.

    Attributes:
        recovery_class: restores the connection after a loss.

    Raises:
        LocalProtocolError: there is no place, or ``backoff`` is given for a stream.
    """

    __slots__ = (
        "_backoff",
        "_connection",
        "_manager",
        "_next",
        "_nursery",
        "_places",
        "_stream",
        "_url",
        "_watchers",
    )

    recovery_class: ClassVar[type[RecoveryBase[Any]]]

    def __init__(
        self,
        places: Sequence[P],
        stream: trio.abc.Stream | Callable[[], trio.abc.Stream] | None,
        backoff: Backoff | None,
    ) -> None:
        if not places:
            raise LocalProtocolError("no URL to dial: give at least one")
        if backoff is not None and stream is not None and not callable(stream):
            raise LocalProtocolError("a stream cannot be dialled again: reconnect needs a URL")
        self._places = places
        self._next = 0
        self._stream = stream
        self._backoff = backoff
        self._url: Url | None = None
        self._watchers = Watchers()

    def changes(self) -> Changes:
        """Return an iterator over all changes of the connection, from the first dial on.

        Failed attempts are included. Iterate in a separate task: entering waits as long as ``reconnect`` permits. Without
        ``reconnect`` the iterator ends at once.
        """
        if self._backoff is None:
            return Changes(ended=True)
        return self._watchers.changes(attempts=True)

    @abstractmethod
    async def _dial(self) -> str:
        """Dial the next place, wait until the connection is open, and return its URL.

        The place is given by ``_next_place``. The first call makes ``_connection``, which is closed on leaving. If it raises,
        nothing stays open.
        """

    def _next_place(self) -> P:
        """Return the next place in turn."""
        place = self._places[self._next]
        self._next = (self._next + 1) % len(self._places)
        return place

    async def _transport_to(
        self, url: Url | None, tls: TlsOptions, seconds: float | None
    ) -> tuple[Transport, bool]:
        """Return a transport with all its layers, and whether it is private.

        Args:
            url: of the place; None for the program's own stream.
            tls: the options of the layers.
            seconds: for the whole call; None for any time.

        Raises:
            trio.TooSlowError: the time is up.
            OSError, AmqpError: as in ``connect`` and ``TlsOptions.put_on``.
        """
        with trio.fail_after(inf if seconds is None else seconds):
            stream = await self._stream_to(url)
            transport = await tls.put_on(stream, url)
        return transport, self._is_private(stream, transport)

    async def _stream_to(self, url: Url | None) -> trio.abc.Stream:
        """Return a stream without layers."""
        if self._stream is not None:
            return self._stream() if callable(self._stream) else self._stream
        assert url is not None
        self._url = url
        return await connect(url)

    def _is_private(self, stream: trio.abc.Stream, transport: Transport) -> bool:
        """Whether no third party can read the stream or the layers above it."""
        return transport.private or is_private(stream)

    def _make_recovery(self, connection: C, redial: Redial) -> RecoveryBase[Any]:
        """Make the object that restores ``connection`` after a loss."""
        return self.recovery_class(connection, self._dial_named, redial, self._watchers)

    async def _dial_named(self) -> str:
        """Dial as ``_dial``; an error names the place that was dialled."""
        self._url = None
        try:
            return await self._dial()
        except AmqpError as failure:
            if self._url is not None:
                failure.args = (self._failure_text(failure, self._url), *failure.args[1:])
            raise

    def _failure_text(self, failure: AmqpError, url: Url) -> str:
        text = str(failure)
        advice = next((advice for part, advice in _ADVICE.items() if part in text), "")
        place = url.authority if url.host else str(url)
        return f"{text}{advice}" if place in text else f"{place}: {text}{advice}"

    async def __aenter__(self) -> C:
        check_trio()
        # The nursery is entered and left by hand, because an exception of the user's block must not pass
        # through it: the nursery would wrap it in a group.
        self._manager = trio.open_nursery()
        self._nursery: trio.Nursery = await self._manager.__aenter__()
        self._connection: C | None = None
        try:
            return await self._first_dial()
        except BaseException as failure:
            self._watchers.tell(Change("stopped", failure if isinstance(failure, Exception) else None))
            await self._leave()
            raise

    async def _first_dial(self) -> C:
        recovers, failed = self.recovery_class, self._watchers.failed
        redial = Redial(self._backoff, is_final=recovers.is_final, log=recovers.log, failed=failed)
        url = await redial.first(self._dial_named, len(self._places))
        connection = self._connection
        assert connection is not None
        if self._backoff is not None:
            connection.recovery = recovery = self._make_recovery(connection, redial)
            self._nursery.start_soon(recovery.run)
            self._watchers.tell(Change("restored", url=url))
        connection.on_ready()
        return connection

    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        await self._leave()

    async def _leave(self) -> None:
        try:
            if self._connection is not None:
                await self._connection.aclose()
        finally:
            self._nursery.cancel_scope.cancel()
            await self._manager.__aexit__(None, None, None)
