"""LinkOwner: the interface of the object that owns an engine's link.

Senders and receivers own their links, and so do the inlets and outlets of a container. Knows no transport and
no task.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from trio_amqp10.amqp10.engine.events import LinkDetached
    from trio_amqp10.amqp10.spec.transport import Attach

    from .delivery import Delivery, Outcome
    from .link_carriers import LinkSession
    from .statistics import ReceiverStatistics, SenderStatistics


class LinkOwner(Protocol):
    """The object that the engine wakes for a link."""

    touched: bool

    @property
    def name(self) -> str:
        """The link's name (2.6.1)."""
        ...

    @property
    def role(self) -> bool:
        """The end of the link that is ours: ``Role.SENDER`` or ``Role.RECEIVER``."""
        ...

    @property
    def remote(self) -> Attach:
        """The peer's attach (2.7.3)."""
        ...

    @property
    def session(self) -> LinkSession:
        """The session of the link."""
        ...

    @property
    def terminus(self) -> Any:
        """The source or target with the node, at whichever end the node is (3.5)."""
        ...

    @property
    def node(self) -> str | None:
        """The address of the node, at whichever end the node is."""
        ...

    @property
    def credit(self) -> int:
        """The number of messages that may still be sent without more credit (2.6.7)."""
        ...

    def statistics(self) -> SenderStatistics | ReceiverStatistics:
        """Return figures of the link: its state, and totals since it was opened."""
        ...

    # -- from the connection ----------------------------------------------------------------

    def wake(self) -> None:
        """Look for new credit, deliveries or settlements, or the end of the link."""
        ...

    def on_attached(self) -> None:
        """Note that the peer has answered the attach."""
        ...

    def on_detached(self, event: LinkDetached) -> None:
        """Note that the link is over."""
        ...

    # -- from its deliveries ----------------------------------------------------------------

    def permitted(self, delivery: Delivery, outcome: Outcome) -> Outcome | None:
        """Return the outcome to send, given one other than accepted (3.5.3).

        The source of the link may not permit ``outcome``. None if the peer was answered in another way.
        """
        ...

    def has_lapsed(self, delivery: Any) -> bool:
        """Whether the transport of the delivery is lost, while its link is restored."""
        ...

    def raise_if_outcome_lost(self, delivery: Any) -> None:
        """Raise if no outcome of this delivery can arrive any more."""
        ...

    def reading(self, delivery: Any) -> None:
        """Note that the calling task reads ``delivery`` in chunks.

        None: it has finished.
        """
        ...
