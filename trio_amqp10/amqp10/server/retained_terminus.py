"""A terminus that is retained without its link, and its owner (2.6.1, 3.5.3).

Knows the terms that were agreed with the peer; ``retained_termini`` knows when it expires, and ``link_store``
which part of it is on disk.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from trio_amqp10.amqp10.engine.unsettled_state import ReceiverTerminus, SenderTerminus
from trio_amqp10.amqp10.peer.terminus_store import Retention
from trio_amqp10.amqp10.spec.messaging import ExpiryPolicy
from trio_amqp10.amqp10.spec.transport import Role
from trio_amqp10.broker.nodes.refusals import OutletKey
from trio_amqp10.net.login_failures import place_of

if TYPE_CHECKING:
    from trio_amqp10.amqp10.spec.messaging import Source, Target
    from trio_amqp10.core.timer_heap import Timer

    from .link_end_base import LinkEnd

NOTHING: Final = Retention(expiry_policy=ExpiryPolicy.LINK_DETACH)


UNKNOWN: Final = "a peer from before the restart that was not authenticated"


class Key(NamedTuple):
    """The identity of a link: names are unique between two containers (2.6.1).

    They are unique in one direction. A container-id proves nothing, so containers of different users are different,
    whatever their ids; all peers that are not authenticated count as one user.
    """

    container_id: str
    name: str
    role: bool
    user: str | None

    def origin(self, host: str | None) -> str:
        """Return the origin whose limit the link counts in.

        The origin is the user, or if the peer is not authenticated, its network.
        """
        if self.user is not None:
            return f"user {self.user!r}"
        return f"a peer at {place_of(host)} that is not authenticated"


class RetainedTerminus:
    """One terminus.

    Attributes:
        key: of its link.
        origin: the origin whose limit it counts in.
        terminus: its unsettled deliveries.
        retention: the terms that were agreed with the peer.
        holder: the link that has it, or had it last; None if the last link was before a restart.
        attached: whether that link is attached.
        deadline: when it expires, while it is not attached.
        timer: fires at the deadline, if it has one; cancelled when a link is attached again, or the terminus is removed.
        stored: whether the store has a row of it.
        end: the source or target in the container's attach, for a peer that recovers the link by its name alone (2.6.3);
            or None.
        outlet_key: the key by which queues remember a receiving link; they forget it with the terminus (3.4.5).
        octets: octets of messages that arrived and wait for the link, while it is not attached.
    """

    __slots__ = (
        "attached",
        "deadline",
        "end",
        "holder",
        "key",
        "octets",
        "origin",
        "outlet_key",
        "retention",
        "stored",
        "terminus",
        "timer",
    )

    def __init__(self, key: Key, origin: str) -> None:
        self.key: Final = key
        self.origin: str = origin
        self.terminus: SenderTerminus | ReceiverTerminus = self.new_terminus()
        self.retention: Retention = NOTHING
        self.holder: LinkEnd[Any] | None = None
        self.attached: bool = False
        self.deadline: float = inf
        self.timer: Timer[RetainedTerminus] | None = None
        self.stored: bool = False
        self.end: Source | Target | None = None
        self.outlet_key: Final = OutletKey()
        self.octets: int = 0

    def new_terminus(self) -> SenderTerminus | ReceiverTerminus:
        """Return a terminus without deliveries."""
        return SenderTerminus() if self.key.role is Role.SENDER else ReceiverTerminus()
