"""ServiceBusConnection: a connection whose receivers may request a session.

The filter of a link names a session, or is null for any session with messages; then the answer to the attach waits until there
is one. The answer names the session and the end of its lock.

Knows links and entities; does not know the messages of a session.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

import trio

from trio_amqp10.amqp10.server.connection import Amqp10Connection
from trio_amqp10.amqp10.server.relay_inlet import wanted
from trio_amqp10.amqp10.spec.messaging import ExpiryPolicy, Source
from trio_amqp10.amqp10.wire.values import Described, Symbol
from trio_amqp10.broker.nodes.node import RefusedError, SubscriptionTerms
from trio_amqp10.core.errors import Condition

from .constants import SESSION_FILTER, SESSION_LOCKED_UNTIL, TIMEOUT, ticks
from .entity import Entity
from .message_sessions import SessionWaiter

if TYPE_CHECKING:
    from trio_amqp10.amqp10.peer.connection import Connection
    from trio_amqp10.amqp10.peer.incoming_links import IncomingSender
    from trio_amqp10.container.container import Container

_PATIENCE: Final = 60.0
"""Seconds to wait for a session, unless the client sets a shorter time."""


class ServiceBusConnection(Amqp10Connection):
    """An ``Amqp10Connection`` whose receivers may request a session."""

    def __init__(self, container: Container, connection: Connection) -> None:
        super().__init__(container, connection)
        self._seekers: dict[SessionWaiter, Entity] = {}

    def admit_outlet(self, link: IncomingSender, asked: Any) -> None:
        node = self.find_source(asked)
        if not isinstance(asked, Source) or not isinstance(node, Entity):
            super().admit_outlet(link, asked)
            return
        filters: dict[Any, Any] = dict(asked.filter or {})
        if not node.options.requires_session:
            if SESSION_FILTER in filters:
                raise RefusedError(Condition.NOT_ALLOWED, f"{node.address!r} has no sessions")
            super().admit_outlet(link, asked)
            return
        if SESSION_FILTER not in filters:
            raise RefusedError(
                Condition.NOT_ALLOWED,
                f"{node.address!r} requires sessions: a receiver must request a session",
            )
        session = filters[SESSION_FILTER]
        if isinstance(session, Described):
            session = session.value
        if session is None:
            self._seek(link, asked, node)
        elif isinstance(session, str):
            node.sweep()
            self._take_session(link, asked, node, session)
        else:
            raise RefusedError(
                Condition.INVALID_FIELD,
                f"the name of a session is {type(session).__name__}: expected a string",
            )

    def _seek(self, link: IncomingSender, asked: Source, node: Entity) -> None:
        """Answer the attach when there is a session, or refuse it when the wait ends."""

        def found(session: str) -> None:
            done()
            # The token may have expired during the wait.
            self.guard.ask(wanted(link), partial(take, session))

        def take(session: str, refused: RefusedError | None) -> None:
            if refused is None:
                self._take_session(link, asked, node, session)
            else:
                link.refuse_now(refused.condition, refused.description)

        def given_up() -> None:
            done()
            link.refuse_now(TIMEOUT, "no session has messages")

        def done() -> None:
            del self._seekers[seeker]

        seeker = SessionWaiter(trio.current_time() + _patience(link), found, given_up)
        self._seekers[seeker] = node
        node.seek(seeker)

    def _take_session(self, link: IncomingSender, asked: Source, node: Entity, session: str) -> None:
        if not link.is_waiting:
            return  # the peer has detached the link in the meantime
        subscription_terms = SubscriptionTerms(name=link.name)
        node.check_outlet(self, copying=False, target=None, subscription_terms=subscription_terms)
        lock = node.sessions.lock(session)
        source = Source(
            address=asked.address,  # unchanged, because clients compare it
            expiry_policy=ExpiryPolicy.LINK_DETACH,
            filter={SESSION_FILTER: session},
            default_outcome=asked.default_outcome,
            outcomes=asked.outcomes,
        )
        properties: dict[Symbol, Any] = {SESSION_LOCKED_UNTIL: ticks(lock.wall)}
        self.serve_outlet(
            link,
            node,
            source,
            subscription_terms,
            properties=properties,
            prepare=partial(node.bind_session, lock=lock),
        )

    def ended(self) -> None:
        super().ended()
        for seeker, node in self._seekers.items():
            node.sessions.seekers.remove(seeker)
        self._seekers.clear()


def _patience(link: IncomingSender) -> float:
    milliseconds: Any = (link.remote.properties or {}).get(TIMEOUT)
    if isinstance(milliseconds, int) and not isinstance(milliseconds, bool) and milliseconds >= 0:
        return min(milliseconds / 1000, _PATIENCE)
    return _PATIENCE
