"""What the parts of a channel of 10.3 know of it: tickets, options, files and what is out, on the channel of 0-9-1.

The parts import this and not ``channel``, which makes them: so few files import each other, even for types.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from trio_amqp10.container.protocols.amqp091.channel import ServerChannel

if TYPE_CHECKING:
    from trio_amqp10.container.nodes.refusals import OutletKey

    from .consuming import Consuming103
    from .files import FileTransfers
    from .options import Options

__all__ = ["ChannelBase"]


class ChannelBase(ServerChannel):
    """See ``ServerChannel``.

    Attributes:
        options: of the server.
        files: that it stages in either direction.
        consuming103: what it receives: ``consuming`` of ``ServerChannel``, with what 10.3 adds.
        outlet_key: what queues remember the channel by, as long as it is open (C 1096).
        prefetch_max: octets that may be out on it; 0 for any number (C 516-518).
    """

    __slots__ = ("consuming103", "files", "options", "outlet_key", "prefetch_max")

    options: Options
    files: FileTransfers
    consuming103: Consuming103
    outlet_key: OutletKey
    prefetch_max: int

    def check_ticket(self, number: int, right: str) -> None:
        """See ``Tickets.check``."""
        raise NotImplementedError

    def alert_cancelled(self, tag: str, description: str | None) -> None:
        """A consumer has ended without the client's doing."""
        raise NotImplementedError
