"""LinkOwner: the interface of the object that owns an engine's link.

Senders and receivers own theirs; so do the inlets and outlets of a container. Knows no transport and no task.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from trio_amqp10.engine.events import LinkDetached
    from trio_amqp10.spec.transport import Attach

    from .delivery import Delivery, Outcome
    from .link_carriers import LinkSession
    from .statistics import ReceiverStatistics, SenderStatistics

__all__ = ["LinkOwner"]


class LinkOwner(Protocol):
    """The object that the engine wakes for a link."""

    touched: bool

    @property
    def name(self) -> str:
        """The link's name (2.6.1)."""
        ...

    @property
    def role(self) -> bool:
        """Which end is ours: ``Role.SENDER`` or ``Role.RECEIVER``."""
        ...

    @property
    def remote(self) -> Attach:
        """The peer's attach (2.7.3)."""
        ...

    @property
    def session(self) -> LinkSession:
        """The session that the link is on."""
        ...

    @property
    def terminus(self) -> Any:
        """Where messages go to or come from, at whichever end that is (3.5)."""
        ...

    @property
    def node(self) -> str | None:
        """The address of the node, at whichever end it is."""
        ...

    @property
    def credit(self) -> int:
        """Messages that may still be sent without more credit (2.6.7)."""
        ...

    def statistics(self) -> SenderStatistics | ReceiverStatistics:
        """What the link has done so far: live figures by name."""
        ...

    # -- from the connection ----------------------------------------------------------------

    def wake(self) -> None:
        """Credit, deliveries or settlements came, or the link is gone."""
        ...

    def on_attached(self) -> None:
        """The peer has answered our attach."""
        ...

    def on_detached(self, event: LinkDetached) -> None:
        """The link is over."""
        ...

    # -- from its deliveries ----------------------------------------------------------------

    def permitted(self, delivery: Delivery, outcome: Outcome) -> Outcome | None:
        """The outcome to send in place of one that is not accepted; None if the peer was answered in another way (3.5.3)."""
        ...

    def has_lapsed(self, delivery: Any) -> bool:
        """Whether the delivery went with a transport that is lost, while its link comes back."""
        ...

    def raise_if_outcome_lost(self, delivery: Any) -> None:
        """Raise if nothing will be heard of this delivery any more."""
        ...

    def reading(self, delivery: Any) -> None:
        """The calling task reads this delivery in chunks; None: it has finished."""
        ...
