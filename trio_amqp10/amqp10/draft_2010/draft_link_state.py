"""The state of a link that only the draft has."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trio_amqp10.amqp10.spec.transport import Role

from .credit_units import TransferUnits
from .spec.transport import ErrorMode

if TYPE_CHECKING:
    from .incoming_message import IncomingMessage
    from .outgoing_message import OutgoingMessage
    from .spec.transport import Attach, Linkage


class LinkNotes:
    """Linkages, error mode and messages in progress of one link.

    Attributes:
        name: of the link; ``role`` is that of this peer.
        local: the linkage in the attach that was sent; ``remote`` is that of the other peer.
        first_count: the transfer-count in the attach that was sent, if this peer sends.
        handle: the handle of this peer, while it is attached; ``remote_handle`` that of the other peer.
        ends_session: whether an error of the link ends the session (D 1516-1522).
        unlimited: whether the peer's receiver has set no limit (D 1002).
        incoming: the message of which a part has arrived.
        outgoing: the message of which the engine has written a part.
        units: credit in transfer units; None if the peer's receiver counts whole messages.
        starts: for the delivery-tag of each message that may be resumed, how many of its octets the peer has.
    """

    __slots__ = (
        "ends_session",
        "first_count",
        "handle",
        "incoming",
        "local",
        "name",
        "outgoing",
        "remote",
        "remote_handle",
        "role",
        "starts",
        "units",
        "unlimited",
    )

    def __init__(self, name: str, role: bool) -> None:
        self.name: str = name
        self.role: bool = role
        self.local: Linkage | None = None
        self.remote: Linkage | None = None
        self.first_count: int = 0
        self.handle: int | None = None
        self.remote_handle: int | None = None
        self.ends_session: bool = False
        self.unlimited: bool = False
        self.incoming: IncomingMessage | None = None
        self.outgoing: OutgoingMessage | None = None
        self.units: TransferUnits | None = None
        self.starts: dict[bytes, int] = {}

    def attached(self, body: Attach) -> None:
        """Keep the fields of the peer's attach."""
        self.remote = body.local
        self.remote_handle = body.handle
        self.ends_session = body.error_mode == ErrorMode.END
        if body.transfer_unit and self.role is Role.SENDER:  # The unit of a sending peer is ignored (D 1278).
            self.units = TransferUnits(body.transfer_unit)
        unsettled = body.unsettled or {}
        self.starts = {
            tag: state.bytes_transferred
            for tag, state in unsettled.items()
            if getattr(state, "bytes_transferred", None)
        }

    def drop_incoming(self) -> None:
        """Drop a partly received message, which will not be completed."""
        incoming, self.incoming = self.incoming, None
        if incoming is not None:
            incoming.drop()
