"""Protocols: what links use of the session and the connection that carry them.

``Session``, ``Connection`` and ``Recovery`` fulfil them. So a link can be read, and checked, without those.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from contextlib import AbstractContextManager

    from trio_amqp10.engine.connection import Connection as EngineConnection
    from trio_amqp10.engine.session import Session as EngineSession
    from trio_amqp10.net.waiters import CheckpointThrottle
    from trio_amqp10.spec.transport import Error

    from .remote_open import Remote
    from .statistics import SessionStatistics
    from .terminus_store import TerminusStore

__all__ = ["LinkConnection", "LinkFactories", "LinkRecovery", "LinkSession"]


class LinkRecovery(Protocol):
    """What attaches a link again after a loss; see ``Recovery``."""

    links: dict[Any, None]
    stopped: bool
    loss: Exception | None

    def answered(self, link: Any) -> None:
        """The peer has answered the attach of this link."""
        ...

    def damaged(self, link: Any) -> None:
        """The peer has ended this link, and it is to be attached again."""
        ...

    def forget_link(self, link: Any) -> None:
        """The link is over, and is not attached again."""
        ...


class LinkFactories(Protocol):
    """The classes of the links of a connection; see ``LinkClasses``."""

    @property
    def sender(self) -> Callable[..., Any]:
        """Makes links that send."""
        ...

    @property
    def receiver(self) -> Callable[..., Any]:
        """Makes links that receive."""
        ...


class LinkConnection(Protocol):
    """A connection, as its links use it; see ``Connection``."""

    close_timeout: float
    engine: EngineConnection
    pace: CheckpointThrottle
    stores: frozenset[TerminusStore]

    @property
    def kinds(self) -> LinkFactories:
        """The classes of its links."""
        ...

    @property
    def recovery(self) -> LinkRecovery | None:
        """What attaches links again; None for a connection that does not come back."""
        ...

    @property
    def recovering(self) -> bool:
        """Whether what the loss of the transport ended comes back."""
        ...

    @property
    def container_id(self) -> str:
        """The name of this end (2.4.1)."""
        ...

    @property
    def remote(self) -> Remote:
        """The peer's open (2.7.1)."""
        ...

    @property
    def isolates_links(self) -> bool:
        """Whether a link is to have a session of its own where nothing is said of it."""
        ...

    def loss(self) -> Exception | None:
        """Why the last transport is gone; None if it is not."""
        ...

    @property
    def closed(self) -> bool:
        """Whether the connection is over; one that comes back is not."""
        ...

    def expecting(self, what: str) -> AbstractContextManager[None]:
        """As ``Connection.expecting``."""
        ...

    def open_sender(self, *args: Any, **options: Any) -> Any:
        """As ``Connection.open_sender``."""
        ...

    def open_receiver(self, *args: Any, **options: Any) -> Any:
        """As ``Connection.open_receiver``."""
        ...

    def open_requester(self, *args: Any, **options: Any) -> Any:
        """As ``Connection.open_requester``."""
        ...

    def restore_with(self, call: Callable[[], Awaitable[object]]) -> AbstractContextManager[None]:
        """As ``Connection.restore_with``."""
        ...

    def new_name(self) -> str:
        """A name for a link that has none (2.6.1)."""
        ...

    def session_for(self, session: Any, *, own: bool) -> LinkSession:
        """The session for a new attachment: ``session``, one of its own, or the session of the connection."""
        ...

    async def wait_recovered(self) -> None:
        """Wait until there is a peer, or there will not be one any more. Cancelled: nothing has happened."""
        ...


class LinkSession(Protocol):
    """A session, as its links use it; see ``Session``."""

    opening: dict[Any, None]

    @property
    def connection(self) -> LinkConnection:
        """The connection that the session is on."""
        ...

    @property
    def engine(self) -> EngineSession:
        """The engine's end of the session."""
        ...

    @property
    def is_over(self) -> bool:
        """Whether either end has ended it; a session that its connection brings back is not over."""
        ...

    @property
    def was_ended(self) -> bool:
        """Whether a peer has ended it, and not only the loss of the transport."""
        ...

    @property
    def closed_here(self) -> bool:
        """Whether this end has ended it, or the connection."""
        ...

    def cause(self, *, opening: bool = False) -> Exception | None:
        """Why the session ended, for a link on it; None while it lives or if it ended without an error."""
        ...

    def open_sender(self, *args: Any, **options: Any) -> Any:
        """As ``Session.open_sender``."""
        ...

    def open_receiver(self, *args: Any, **options: Any) -> Any:
        """As ``Session.open_receiver``."""
        ...

    def open_transaction(self, *args: Any, **options: Any) -> Any:
        """As ``Session.open_transaction``."""
        ...

    def statistics(self) -> SessionStatistics:
        """As ``Session.statistics``."""
        ...

    def wake(self) -> None:
        """Wake every task that waits for the session."""
        ...

    def begin_anew(self) -> None:
        """Begin the session on the new transport of its connection."""
        ...

    def abandon(self) -> None:
        """End the session, whatever the peer answers."""
        ...

    async def aclose(self, error: Error | None = None) -> None:
        """End the session and its links (2.5.2). Cancelled: the end is on its way, only the answer is not awaited."""
        ...
