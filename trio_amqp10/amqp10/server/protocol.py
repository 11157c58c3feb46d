"""AMQP 1.0 over the nodes of a container: admits connections and serves them.

An emulator of another service changes its behaviour by attributes of ``container.amqp10``, before any peer connects.

Knows connections of ``peer``; ``connection`` serves their links.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import trio

from trio_amqp10.amqp10.filters import capabilities
from trio_amqp10.amqp10.peer.class_overrides import DEFAULT_CLASSES, LinkClasses
from trio_amqp10.amqp10.peer.link_options import ANONYMOUS_RELAY
from trio_amqp10.amqp10.peer.sole_connection_request import CAPABILITY
from trio_amqp10.amqp10.spec.transport import Error
from trio_amqp10.broker.nodes.node import RefusedError

from .connection import Amqp10Connection, Amqp10Container
from .outlets import SenderOutlet
from .sole_connection_terms import answer

if TYPE_CHECKING:
    from collections.abc import Callable

    from trio_amqp10.amqp10.peer.connection import Connection

_PAIRS: Final = "LINK_PAIR_V1_0"
_LATE: Final = 5.0
"""Seconds, at most, to wake links that had received something at the end."""


class Amqp10:
    """The service of a container to peers of AMQP 1.0.

    Args:
        container: the container of the nodes.

    Attributes:
        kinds: the classes of links and deliveries of connections, for links without a node.
        outlet_class: the class of links that receive from nodes.
        echoes: whether an attach is answered with the address as the peer spelt it, for clients that compare it.
        settles_first: whether links that send to nodes are answered with receiver settle mode first, whatever the peer
            asks for.
        converse: returns the object that admits the links of a connection, given the container and the connection.
    """

    def __init__(self, container: Amqp10Container) -> None:
        self._container = container
        self.kinds: LinkClasses = DEFAULT_CLASSES
        self.outlet_class = SenderOutlet
        self.echoes = False
        self.settles_first = False
        self.converse: Callable[[Amqp10Container, Connection], Amqp10Connection] = Amqp10Connection

    @staticmethod
    def offered_capabilities() -> tuple[str, ...]:
        """Return the capabilities that a container offers in every ``open`` (2.7.1)."""
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
                    await self._serve_links(connection, conversation, nursery)
                except RefusedError as refusal:
                    await connection.aclose(_error_of(refusal))
                except Exception as lost:
                    loss = lost  # Raised inside of the nursery, it would cancel the handlers.
                finally:
                    self._container.leave(conversation)
        finally:
            connection.owner = None
        if loss is not None:
            try:
                raise loss
            finally:
                del loss  # Its traceback refers to this frame: break the cycle.

    async def _serve_links(
        self, connection: Connection, conversation: Amqp10Connection, nursery: trio.Nursery
    ) -> None:
        """Serve the links until the connection is over, and they have had all of it."""
        self._container.enter(conversation, nursery)
        links = connection.incoming_links()  # Links wait here until the peer has permission.
        await conversation.guard.check("open", None)
        try:
            async for link in links:
                conversation.admit(link)
        finally:
            with trio.move_on_after(_LATE, shield=True):
                await connection.pump.all_woken()

    def _conversation(self, connection: Connection) -> Amqp10Connection:
        """Return the object that serves this connection; create it once."""
        known = connection.owner
        if isinstance(known, Amqp10Connection) and known.serves(self._container):
            return known
        connection.owner = made = self.converse(self._container, connection)
        return made


def _error_of(refusal: RefusedError) -> Error:
    return Error(condition=refusal.condition, description=refusal.description, info=refusal.info)
