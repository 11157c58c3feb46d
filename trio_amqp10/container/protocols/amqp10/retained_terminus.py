"""A terminus that is retained without its link, and whose it is (2.6.1, 3.5.3).

Knows what was agreed with the peer; does not know when it is over (``retained_termini``), nor what of it is on disk
(``link_store``).
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from trio_amqp10.container.nodes.refusals import OutletKey
from trio_amqp10.engine.unsettled_state import ReceiverTerminus, SenderTerminus
from trio_amqp10.net.login_failures import place_of
from trio_amqp10.peer.terminus_store import Retention
from trio_amqp10.spec.messaging import ExpiryPolicy
from trio_amqp10.spec.transport import Role

if TYPE_CHECKING:
    from trio_amqp10.spec.messaging import Source, Target
    from trio_amqp10.timer_heap import Timer

__all__ = ["NOTHING", "UNKNOWN", "Key", "RetainedTerminus", "TerminusHolder"]

NOTHING: Final = Retention(expiry_policy=ExpiryPolicy.LINK_DETACH)


UNKNOWN: Final = "a peer from before the restart that was not authenticated"


class Key(NamedTuple):
    """Which link: names are unique between two containers, in one direction (2.6.1).

    A container-id proves nothing. So the containers of two users are two, whatever they call themselves; the peers
    that are not authenticated have names of their own together.
    """

    container_id: str
    name: str
    role: bool
    user: str | None

    def origin(self, host: str | None) -> str:
        """Which share it counts in: its user's; that of the peer's network if the peer is not authenticated."""
        if self.user is not None:
            return f"user {self.user!r}"
        return f"a peer at {place_of(host)} that is not authenticated"


class TerminusHolder(Protocol):
    """The link that holds a terminus."""

    def steal(self) -> None:
        """Another link has it now."""
        ...

    def suspend(self, condition: str, description: str) -> None:
        """Detach for now, without closing: the peer may attach again, and find all as it was."""
        ...

    def close(self, condition: str | None = None, description: str | None = None) -> None:
        """Detach for good."""
        ...

    def expire(self) -> None:
        """The link did not come back in time: what is unsettled on it will never be settled."""
        ...


class RetainedTerminus:
    """One terminus.

    Attributes:
        key: of its link.
        origin: the share that it counts in.
        terminus: what is unsettled.
        retention: what was agreed.
        holder: the link that has it, or had it last; None where that was before a restart.
        attached: whether that link lives.
        deadline: when it expires, while it is not attached.
        timer: calls for that, once it has a deadline; cancelled when it is attached again, or removed.
        stored: whether the store has a row of it.
        end: what our attach said of it, for a peer that recovers the link by its name alone (2.6.3); or None.
        outlet_key: what queues remember a link by that receives; they forget it with the terminus (3.4.5).
        octets: of messages that came and wait for the link, while it is not attached.
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
        self.holder: TerminusHolder | None = None
        self.attached: bool = False
        self.deadline: float = inf
        self.timer: Timer[RetainedTerminus] | None = None
        self.stored: bool = False
        self.end: Source | Target | None = None
        self.outlet_key: Final = OutletKey()
        self.octets: int = 0

    def new_terminus(self) -> SenderTerminus | ReceiverTerminus:
        """One that remembers nothing."""
        return SenderTerminus() if self.key.role is Role.SENDER else ReceiverTerminus()
