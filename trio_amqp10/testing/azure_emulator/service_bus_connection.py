"""ServiceBusConnection: a connection whose links may ask for a session.

The filter names a session, or is null for whichever has messages; the answer to the attach then comes when there
is one. It says which, and until when it is locked.

Knows links and entities; does not know what a session is for.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

import trio

from trio_amqp10.container.nodes.node import RefusedError, SubscriptionTerms
from trio_amqp10.container.protocols.amqp10.connection import Amqp10Connection
from trio_amqp10.errors import Condition
from trio_amqp10.spec.messaging import ExpiryPolicy, Source
from trio_amqp10.wire.values import Described, Symbol

from .constants import SESSION_FILTER, SESSION_LOCKED_UNTIL, TIMEOUT, ticks
from .entity import Entity
from .message_sessions import SessionWaiter

if TYPE_CHECKING:
    from trio_amqp10.container.container import Container
    from trio_amqp10.peer.connection import Connection
    from trio_amqp10.peer.incoming_links import IncomingSender

__all__ = ["ServiceBusConnection"]

_PATIENCE: Final = 60.0
"""Seconds to wait for a session, for who does not say how long."""


class ServiceBusConnection(Amqp10Connection):
    """See ``Amqp10Connection``."""

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
                Condition.NOT_ALLOWED, f"{node.address!r} requires sessions: a receiver asks for one"
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
            raise RefusedError(Condition.INVALID_FIELD, "a session is named by a string")

    def _seek(self, link: IncomingSender, asked: Source, node: Entity) -> None:
        """Answer when there is a session, or the peer's time is over."""

        def found(session: str) -> None:
            done()
            self._take_session(link, asked, node, session)

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
            return  # the peer has detached it meanwhile
        subscription_terms = SubscriptionTerms(name=link.name)
        node.check_outlet(self, copying=False, target=None, subscription_terms=subscription_terms)
        lock = node.sessions.lock(session)
        source = Source(
            address=asked.address,  # as it came: clients compare it
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
    said: Any = (link.remote.properties or {}).get(TIMEOUT)
    if isinstance(said, int) and not isinstance(said, bool) and said >= 0:
        return min(said / 1000, _PATIENCE)
    return _PATIENCE
