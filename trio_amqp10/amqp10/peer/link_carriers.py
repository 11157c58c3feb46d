"""The interfaces of the session, connection and recovery that links use.

``Session``, ``Connection``, ``Recovery`` and ``LinkClasses`` implement them. They let the modules of links be
read and type-checked without those classes, which import the modules of links themselves.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from contextlib import AbstractContextManager

    from trio_amqp10.amqp10.engine.connection import Connection as EngineConnection
    from trio_amqp10.amqp10.engine.session import Session as EngineSession
    from trio_amqp10.amqp10.spec.transport import Error
    from trio_amqp10.net.pump import Pump
    from trio_amqp10.net.waiters import CheckpointThrottle

    from .remote_open import Remote
    from .statistics import SessionStatistics
    from .terminus_store import TerminusStore


class LinkRecovery(Protocol):
    """The object that attaches links again after a loss; see ``Recovery``."""

    links: dict[Any, None]
    stopped: bool
    loss: Exception | None

    def answered(self, link: Any) -> None:
        """Note that the peer has answered the attach of this link."""
        ...

    def damaged(self, link: Any) -> None:
        """Attach this link again, which the peer has ended."""
        ...

    def forget_link(self, link: Any) -> None:
        """Do not attach this link again: it is over."""
        ...


class LinkFactories(Protocol):
    """The classes of the links of a connection; see ``LinkClasses``."""

    @property
    def sender(self) -> Callable[..., Any]:
        """The class of sending links."""
        ...

    @property
    def receiver(self) -> Callable[..., Any]:
        """The class of receiving links."""
        ...


class LinkConnection(Protocol):
    """A connection, as its links use it; see ``Connection``."""

    close_timeout: float
    engine: EngineConnection
    pace: CheckpointThrottle
    pump: Pump
    stores: frozenset[TerminusStore]

    @property
    def kinds(self) -> LinkFactories:
        """The classes of its links."""
        ...

    @property
    def recovery(self) -> LinkRecovery | None:
        """The object that attaches links again.

        None for a connection without ``reconnect``.
        """
        ...

    @property
    def recovering(self) -> bool:
        """Whether the connection is restored after a loss of its transport."""
        ...

    @property
    def container_id(self) -> str:
        """The container id of this end (2.4.1)."""
        ...

    @property
    def remote(self) -> Remote:
        """The peer's open (2.7.1)."""
        ...

    @property
    def isolates_links(self) -> bool:
        """Whether links get sessions of their own by default."""
        ...

    def loss(self) -> Exception | None:
        """Return the reason why the last transport ended; None if it has not."""
        ...

    @property
    def closed(self) -> bool:
        """Whether the connection is over and will not be restored."""
        ...

    def expecting(self, what: str) -> AbstractContextManager[None]:
        """Close the connection if the block takes too long; see ``Connection.expecting``."""
        ...

    def open_sender(self, *args: Any, **options: Any) -> Any:
        """Open a sender; see ``Connection.open_sender``."""
        ...

    def open_receiver(self, *args: Any, **options: Any) -> Any:
        """Open a receiver; see ``Connection.open_receiver``."""
        ...

    def open_requester(self, *args: Any, **options: Any) -> Any:
        """Open a requester; see ``Connection.open_requester``."""
        ...

    def restore_with(self, call: Callable[[], Awaitable[object]]) -> AbstractContextManager[None]:
        """Await ``call()`` after each restore; see ``Connection.restore_with``."""
        ...

    def new_name(self) -> str:
        """Return a name for a link that has none (2.6.1)."""
        ...

    def session_for(self, session: Any, *, own: bool) -> LinkSession:
        """Return ``session``, a new session if ``own``, or the default session."""
        ...

    async def session_to_attach(self, session: Any, *, own: bool) -> LinkSession:
        """Return the session for a link, once the peer is known to permit it there."""
        ...

    async def wait_recovered(self) -> None:
        """Wait until a lost connection is restored, or has failed for good.

        Cancelled: nothing has happened.
        """
        ...


class LinkSession(Protocol):
    """A session, as its links use it; see ``Session``."""

    opening: int

    @property
    def connection(self) -> LinkConnection:
        """The connection of the session."""
        ...

    @property
    def engine(self) -> EngineSession:
        """The engine's end of the session."""
        ...

    @property
    def is_over(self) -> bool:
        """Whether either end has ended it; False if it will be restored."""
        ...

    @property
    def was_ended(self) -> bool:
        """Whether either end has ended it, rather than the loss of the transport."""
        ...

    @property
    def closed_here(self) -> bool:
        """Whether this end has ended the session or its connection."""
        ...

    def cause(self, *, opening: bool = False) -> Exception | None:
        """Return the reason why the session ended, for a link on it.

        None while it lives, or if it ended without an error.
        """
        ...

    async def begun(self) -> None:
        """Wait until the peer has begun the session too. Cancelled: nothing has happened."""
        ...

    def open_sender(self, *args: Any, **options: Any) -> Any:
        """Open a sender; see ``Session.open_sender``."""
        ...

    def open_receiver(self, *args: Any, **options: Any) -> Any:
        """Open a receiver; see ``Session.open_receiver``."""
        ...

    def open_transaction(self, *args: Any, **options: Any) -> Any:
        """Open a transaction; see ``Session.open_transaction``."""
        ...

    def statistics(self) -> SessionStatistics:
        """Return figures of the session; see ``Session.statistics``."""
        ...

    def wake(self) -> None:
        """Wake every task that waits for the session."""
        ...

    def begin_again(self) -> None:
        """Begin the session on the new transport of its connection."""
        ...

    def abandon(self) -> None:
        """End the session without waiting for the peer."""
        ...

    async def aclose(self, error: Error | None = None) -> None:
        """End the session and its links (2.5.2).

        Cancelled: the end is written anyway, only the answer is not awaited.
        """
        ...
