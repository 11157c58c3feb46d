"""The draft of AMQP 1.0 of May 2010 over the nodes of a container.

It has the protocol headers of the final standard, so nothing tells it from that before the first frame: a listener that names
it speaks it to all who begin so, and the final standard to nobody. Connections are those of AMQP 1.0 on another wire, and are served
as such.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from trio_amqp10.engine.connection_context import Pool
from trio_amqp10.engine.open_options import OpenOptions
from trio_amqp10.peer.listen import Acceptor, Amqp10Dialect
from trio_amqp10.peer.option_signatures import lists
from trio_amqp10.peer.wires import DRAFT_2010
from trio_amqp10.sasl import Server

if TYPE_CHECKING:
    from typing import Unpack

    from trio_amqp10.container.container import Container
    from trio_amqp10.engine.open_options import OpenKeywords
    from trio_amqp10.net.dialect import AcceptedConnection

__all__ = ["Draft2010"]


class Draft2010:
    """The dialect. ``Container.serve(dialects=["1.0-draft-2010"])`` makes one.

    Args:
        container: whose nodes peers reach.
        max_partial: octets of deliveries that are not complete, on all connections together; None for no limit.
        options: what an open says, and limits, as of ``serve``. Of sessions ``limits.incoming_window`` is the credit, and
            ``strict=True`` refuses encodings that only the final standard has, too.
    """

    name = "AMQP 1.0, draft of 2010"

    @lists(OpenOptions)
    def __init__(
        self,
        container: Container,
        *,
        max_partial: int | None = 256 * 1024 * 1024,
        **options: Unpack[OpenKeywords],
    ) -> None:
        options.setdefault("offered_capabilities", container.offered_capabilities())
        acceptor = Acceptor(
            container_id=container.name,
            sasl=Server(),
            vet=container.vet,
            pool=None if max_partial is None else Pool(max_partial),
            dialect=DRAFT_2010,
            **options,
        )
        self._dialect = Amqp10Dialect(acceptor, container.handle, self.name)

    def claims(self, head: bytes) -> bool | None:
        """As of ``Dialect``: all that the final standard would take."""
        return self._dialect.claims(head)

    async def serve(self, accepted: AcceptedConnection) -> None:
        """As of ``Dialect``. Cancelled: the connection is closed with ``amqp:connection:forced``."""
        acceptor = replace(
            self._dialect.acceptor,
            sasl=accepted.sasl,
            allow_plaintext_password=accepted.allow_plaintext_password,
        )
        await replace(self._dialect, acceptor=acceptor).serve(accepted)
