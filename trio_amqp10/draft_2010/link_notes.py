"""What a link of the draft has beside what the engine knows of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trio_amqp10.spec.transport import Role

from .spec.transport import ErrorMode
from .transfer_units import TransferUnits

if TYPE_CHECKING:
    from .incoming_message import IncomingMessage
    from .outgoing_message import OutgoingMessage
    from .spec.transport import Attach, Linkage

__all__ = ["LinkNotes"]


class LinkNotes:
    """Linkages, error mode and messages in progress of one link.

    Attributes:
        name: of the link; ``role`` is ours.
        local: our linkage, as our attach said it; ``remote`` is the peer's.
        first_count: the transfer-count that our attach said, of a sender.
        handle: ours, while it is attached; ``remote_handle`` the peer's.
        ends_session: whether an error of the link ends the session (D 1516-1522).
        unlimited: whether the peer's receiver has set no limit (D 1002).
        incoming: the message of which a part has come.
        outgoing: the message of which the engine has written a part.
        units: credit in transfer units, of a sender of ours whose receiver counts so; or None.
        starts: octets that the peer has of messages that may be resumed, by delivery-tag.
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
        """The peer's attach."""
        self.remote = body.local
        self.remote_handle = body.handle
        self.ends_session = body.error_mode == ErrorMode.END
        if body.transfer_unit and self.role is Role.SENDER:  # of an outgoing end it is ignored (D 1278)
            self.units = TransferUnits(body.transfer_unit)
        unsettled = body.unsettled or {}
        self.starts = {
            tag: state.bytes_transferred
            for tag, state in unsettled.items()
            if getattr(state, "bytes_transferred", None)
        }

    def drop_incoming(self) -> None:
        """What has come of a message will not be complete."""
        incoming, self.incoming = self.incoming, None
        if incoming is not None:
            incoming.drop()
