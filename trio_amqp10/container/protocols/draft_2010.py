"""The draft of AMQP 1.0 of May 2010 over the nodes of a container.

It has the protocol headers of the final standard, so nothing tells it from that before the first frame: a listener that names
it speaks it to all who begin so, and the final standard to nobody, unless it is to read the first frame (``detect``). Connections are
those of AMQP 1.0 on another wire, and are served as such.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

import trio

from trio_amqp10.draft_2010.detection import detect_draft
from trio_amqp10.engine.open_options import OpenOptions
from trio_amqp10.peer.listen import Acceptor, Amqp10Dialect
from trio_amqp10.peer.option_signatures import lists
from trio_amqp10.peer.wires import DRAFT_2010, FINAL
from trio_amqp10.protocol_headers import AMQP_HEADER, HEADER_SIZE
from trio_amqp10.sasl import Server

if TYPE_CHECKING:
    from typing import Unpack

    from trio_amqp10.container.container import Container
    from trio_amqp10.engine.open_options import OpenKeywords
    from trio_amqp10.net.dialect import AcceptedConnection

__all__ = ["Draft2010"]

_AT_ONCE: Final = 4096
"""Octets to read at a time, before it is known who speaks."""


class Draft2010:
    """The dialect. ``Container.serve(dialects=["1.0-draft-2010"])`` makes one.

    Args:
        container: whose nodes peers reach.
        detect: serve the final standard too: a peer's first frame tells which of both it speaks. In SASL the server speaks first, so
            a peer that begins with that gets the final standard, as the listener serves it.
        options: what an open says, and limits, as of ``serve``; with ``detect`` for both standards. Of sessions ``limits.incoming_window`` is the credit, and
            ``strict=True`` refuses encodings that only the final standard has, too.
    """

    name = "AMQP 1.0, draft of 2010"

    @lists(OpenOptions)
    def __init__(
        self,
        container: Container,
        *,
        detect: bool = False,
        **options: Unpack[OpenKeywords],
    ) -> None:
        options.setdefault("offered_capabilities", container.offered_capabilities())
        acceptor = Acceptor(
            container_id=container.name,
            sasl=Server(),
            vet=container.vet,
            dialect=DRAFT_2010,
            **options,
        )
        self._detects = detect
        self._dialect = Amqp10Dialect(acceptor, container.handle, self.name)

    def claims(self, head: bytes) -> bool | None:
        """As of ``Dialect``: all that the final standard would take; with ``detect`` only what begins without SASL."""
        claim = self._dialect.claims(head)
        if not self._detects or claim is False or AMQP_HEADER.startswith(head):
            return claim
        return False

    async def serve(self, accepted: AcceptedConnection) -> None:
        """As of ``Dialect``. Cancelled: the connection is closed with ``amqp:connection:forced``."""
        acceptor = replace(
            self._dialect.acceptor,
            sasl=accepted.sasl,
            allow_plaintext_password=accepted.allow_plaintext_password,
        )
        if self._detects and not acceptor.sasl.requires_sasl:
            found = await _first_frame(accepted)
            if found is None:
                return
            is_draft, accepted = found
            if not is_draft:
                acceptor = replace(acceptor, dialect=FINAL)
        await replace(self._dialect, acceptor=acceptor).serve(accepted)


async def _first_frame(accepted: AcceptedConnection) -> tuple[bool, AcceptedConnection] | None:
    """Answer the header, which the peer may wait for, and read until the first frame decides; None: the peer has gone.

    Cancelled: the stream is of no use any more.
    """
    stream, head = accepted.transport.stream, accepted.transport.head
    try:
        await stream.send_all(AMQP_HEADER)
        while (is_draft := detect_draft(head[HEADER_SIZE:])) is None:
            data = await stream.receive_some(_AT_ONCE)
            if not data:
                return None
            head += bytes(data)
    except trio.BrokenResourceError:
        return None
    return is_draft, replace(accepted, transport=replace(accepted.transport, head=head), answered=True)
