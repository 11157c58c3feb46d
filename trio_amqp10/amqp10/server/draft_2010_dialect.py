"""The draft of AMQP 1.0 of May 2010 over the nodes of a container.

Its protocol headers are those of the final standard, so the two can be distinguished only by the first frame. A
listener with this dialect therefore speaks the draft to all peers that send this header, and the final standard to
none, unless it reads the first frame (``detect``). A connection is a connection of AMQP 1.0 with other frames, and is
served as such.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

import trio

from trio_amqp10.amqp10.draft_2010.detection import detect_draft
from trio_amqp10.amqp10.engine.open_options import OpenOptions
from trio_amqp10.amqp10.peer.listen import Acceptor, Amqp10Dialect
from trio_amqp10.amqp10.peer.wires import DRAFT_2010, FINAL
from trio_amqp10.core.protocol_headers import AMQP_HEADER, HEADER_SIZE
from trio_amqp10.net.option_signatures import lists
from trio_amqp10.sasl import Server

if TYPE_CHECKING:
    from typing import Unpack

    from trio_amqp10.amqp10.engine.open_options import OpenKeywords
    from trio_amqp10.container.container import Container
    from trio_amqp10.net.dialect import AcceptedConnection

_AT_ONCE: Final = 4096
"""Octets to read at a time until the first frame is complete enough."""


class Draft2010:
    """The dialect. ``Container.serve(dialects=["1.0-draft-2010"])`` makes one.

    Args:
        container: the container of the nodes.
        detect: serve the final standard too: the first frame of a peer decides between both. In SASL the server sends
            first, so a peer that begins with SASL gets the final standard, as the listener serves it.
        options: fields of the open, and limits, as of ``serve``; with ``detect`` for both standards. The credit of
            sessions is ``limits.incoming_window``, and ``strict=True`` also refuses encodings that only the final
            standard has.
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
        """See ``Dialect``: True for all that the final standard would take.

        With ``detect``, only connections that begin without SASL.
        """
        claim = self._dialect.claims(head)
        if not self._detects or claim is False or AMQP_HEADER.startswith(head):
            return claim
        return False

    async def serve(self, accepted: AcceptedConnection) -> None:
        """See ``Dialect``.

        Cancelled: the connection is closed with ``amqp:connection:forced``.
        """
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
    """Answer the header, and read until the first frame decides between the standards.

    The peer may wait for the answer before it sends a frame. Return None if it has disconnected.

    Cancelled: the stream cannot be used any more.
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
