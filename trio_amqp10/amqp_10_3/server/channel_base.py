"""The interface of a channel of 10.3 for its parts, on the channel of 0-9-1.

The parts import this module instead of ``channel``, which creates them. This keeps import circles small, even for types.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from trio_amqp10.amqp091.server.channel import ServerChannel

if TYPE_CHECKING:
    from trio_amqp10.broker.nodes.refusals import OutletKey

    from .consuming import Consuming103
    from .files import FileTransfers
    from .options import Options


class ChannelBase(ServerChannel):
    """A channel with tickets, options, files and windows; see ``ServerChannel``.

    Attributes:
        options: the options of the server.
        files: the files that are staged in either direction.
        consuming103: the deliveries: ``consuming`` of ``ServerChannel``, with the additions of 10.3.
        outlet_key: the key that queues remember for a rejected message, while the channel is open (C 1096).
        prefetch_max: limit of octets of unsettled deliveries; 0 for no limit (C 516-518).
    """

    __slots__ = ("consuming103", "files", "options", "outlet_key", "prefetch_max")

    options: Options
    files: FileTransfers
    consuming103: Consuming103
    outlet_key: OutletKey
    prefetch_max: int

    def check_ticket(self, number: int, right: str) -> None:
        """Raise ``ReplyError`` if the ticket does not permit this; see ``Tickets.check``."""
        raise NotImplementedError

    def alert_cancelled(self, tag: str, description: str | None) -> None:
        """Send an alert about a consumer that the client did not end."""
        raise NotImplementedError
