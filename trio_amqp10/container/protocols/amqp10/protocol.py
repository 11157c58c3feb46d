"""AMQP 1.0 over the nodes of a container: lets connections in and serves them.

What an emulator of another service does otherwise in AMQP 1.0 is set on ``container.amqp10`` before anybody connects.

Knows connections of ``peer``; does not know what becomes of their links (``connection``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import trio

from trio_amqp10.container.nodes.node import RefusedError
from trio_amqp10.filters import capabilities
from trio_amqp10.peer.class_overrides import LinkClasses
from trio_amqp10.peer.link_options import ANONYMOUS_RELAY
from trio_amqp10.peer.sole_connection_request import CAPABILITY
from trio_amqp10.spec.transport import Error

from .connection import Amqp10Connection, Amqp10Container
from .outlets import SenderOutlet
from .sole_connection import answer

if TYPE_CHECKING:
    from collections.abc import Callable

    from trio_amqp10.peer.connection import Connection

__all__ = ["Amqp10"]

_PAIRS: Final = "LINK_PAIR_V1_0"


class Amqp10:
    """What a container is to peers that speak AMQP 1.0.

    Args:
        container: whose nodes the peers reach.

    Attributes:
        kinds: what links and deliveries of connections are made of, where no node stands behind a link.
        outlet_class: what links that receive from nodes are made of.
        echoes: whether an attach is answered with the address as the peer spelt it, for clients that compare it.
        settles_first: whether links that send to nodes are answered with receiver settle mode first, whatever the peer asks for.
        converse: makes what admits the links of a connection, given the container and the connection.
    """

    def __init__(self, container: Amqp10Container) -> None:
        self._container = container
        self.kinds: LinkClasses = LinkClasses()
        self.outlet_class = SenderOutlet
        self.echoes = False
        self.settles_first = False
        self.converse: Callable[[Amqp10Container, Connection], Amqp10Connection] = Amqp10Connection

    @staticmethod
    def offered_capabilities() -> tuple[str, ...]:
        """What a container offers to every peer in its ``open`` (2.7.1)."""
        return (ANONYMOUS_RELAY, _PAIRS, CAPABILITY, *capabilities())

    def vet(self, connection: Connection) -> Error | None:
        """See ``Container.vet``."""
        conversation = self._conversation(connection)
        refusal = self._container.admit(conversation)
        if refusal is not None:
            connection.owner = None
            return _error_of(refusal)
        answer(connection)
        return None

    async def handle(self, connection: Connection) -> None:
        """See ``Container.handle``."""
        loss: Exception | None = None
        connection.use(self.kinds)
        conversation = self._conversation(connection)
        try:
            async with trio.open_nursery() as nursery:
                try:
                    self._container.enter(conversation, nursery)
                    links = connection.incoming_links()  # they wait while we ask
                    await conversation.guard.check("open", None)
                    async for link in links:
                        conversation.admit(link)
                except RefusedError as refusal:
                    await connection.aclose(_error_of(refusal))
                except Exception as lost:
                    loss = lost  # raised in here, it would cancel the handlers
                finally:
                    self._container.leave(conversation)
        finally:
            connection.owner = None
        if loss is not None:
            try:
                raise loss
            finally:
                del loss  # this frame is in its traceback

    def _conversation(self, connection: Connection) -> Amqp10Connection:
        """What serves this connection, from the time that the peer has opened it."""
        known = connection.owner
        if isinstance(known, Amqp10Connection) and known.serves(self._container):
            return known
        connection.owner = made = self.converse(self._container, connection)
        return made


def _error_of(refusal: RefusedError) -> Error:
    return Error(condition=refusal.condition, description=refusal.description, info=refusal.info)
