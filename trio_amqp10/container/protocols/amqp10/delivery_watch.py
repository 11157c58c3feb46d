"""Reports to a lease what the peer makes of the delivery of its message (3.4).

Knows one delivery, and which link it is on now, and what each outcome of AMQP 1.0 is to a lease; does not know what
that means to the node.
"""

from __future__ import annotations

import logging
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, Protocol

from trio_amqp10.container.nodes.node import RefusedError
from trio_amqp10.container.transaction_inlets import attempt
from trio_amqp10.engine.delivery import is_terminal
from trio_amqp10.errors import Condition, LocalProtocolError
from trio_amqp10.spec.messaging import RELEASED, Accepted, Modified, Rejected
from trio_amqp10.spec.transactions import TransactionalState
from trio_amqp10.spec.transport import Error

if TYPE_CHECKING:
    from trio_amqp10.container.nodes.node import Lease
    from trio_amqp10.engine.delivery import OutgoingDelivery

    from .link_end import LinkEnd

__all__ = [
    "AbsentWatch",
    "DeliveryWatch",
    "WatchedOutlet",
    "WatchedWork",
    "accept_sent",
    "return_unsent",
    "tell",
]

_log = logging.getLogger("trio_amqp10.container")

_FAILED: Final = RefusedError(Condition.INTERNAL_ERROR, "the node failed")


class _Retiring(Protocol):
    """The transactions of a connection."""

    def retire(self, watch: DeliveryWatch) -> bool:
        """See ``Coordinator.retire``."""
        ...


class _WatchedPeer(Protocol):
    """The connection of an outlet."""

    @property
    def coordinator(self) -> _Retiring:
        """Its transactions."""
        ...

    def add_unsettled(self, size: int) -> None:
        """A delivery of ``size`` octets waits for its outcome."""
        ...

    def remove_unsettled(self, size: int) -> None:
        """A delivery of ``size`` octets has its outcome."""
        ...


class WatchedOutlet(Protocol):
    """The link that a delivery went through: see ``SenderOutlet``."""

    @property
    def peer(self) -> _WatchedPeer:
        """Whose it is."""
        ...

    def verdict(self, delivery: OutgoingDelivery, lease: Lease) -> None:
        """Report to the lease what the peer made of its message."""
        ...

    def lose(self, lease: Lease) -> None:
        """The link went, and what became of the message is not known."""
        ...

    def accepts(self, outcome: Any) -> bool:
        """Whether the message is gone with this outcome."""
        ...

    def close(self, condition: str | None = None, description: str | None = None) -> None:
        """End the link with this error."""
        ...

    def fail(self) -> None:
        """End the link, because an exception of the node is being handled."""
        ...


class WatchedWork(Protocol):
    """The transaction that decides on a delivery: see ``TransactionalWork``."""

    @property
    def control(self) -> LinkEnd[Any]:
        """The link that it was declared on."""
        ...

    @property
    def committing(self) -> bool:
        """Whether nothing changes it any more."""
        ...

    def drop(self, watch: DeliveryWatch) -> bool:
        """The delivery is not part of it any more, unless it was acquired in it: then True."""
        ...


class DeliveryWatch:
    """Woken by the connection when the peer speaks of a delivery, or its link is gone.

    Deliveries that are accepted and settled, as nearly all are, are listed by the link instead (``SenderLink.accepted``).

    Attributes:
        outlet: that it went through.
        delivery: which.
        size: octets that it counts while its outcome is not known.
        lease: on what went out; None if its outcome does not matter.
        work: the transaction that is to decide on it, while there is one.
    """

    __slots__ = ("delivery", "lease", "outlet", "size", "touched", "work")

    def __init__(
        self, outlet: WatchedOutlet, delivery: OutgoingDelivery, size: int, lease: Lease | None
    ) -> None:
        self.touched: bool = False
        self.outlet: WatchedOutlet = outlet
        self.delivery: OutgoingDelivery = delivery
        self.work: WatchedWork | None = None
        self.size: int = size
        self.lease: Final = lease
        outlet.peer.add_unsettled(size)

    @property
    def record(self) -> int | str | None:
        """Under which the store has the message; None if it does not."""
        return None if self.lease is None else self.lease.record

    def wake(self) -> None:
        try:
            self._look()
        except Exception:
            self.outlet.fail()

    def _look(self) -> None:
        delivery = self.delivery
        if delivery.watcher is not self:
            return  # touched, and then told at once
        if (
            self.work is not None or delivery.state.__class__ is TransactionalState
        ) and not self.outlet.peer.coordinator.retire(self):
            return
        if not delivery.settled:
            link = delivery.link
            if link.session.settlement.is_live(delivery):
                if link.confirms and is_terminal(delivery.state):
                    self._confirm()
                return  # else it is how far it came so far (3.4.1)
            if link.terminus is not None and delivery.tag in link.terminus.unsettled:
                return  # its link may come back
        self._finish()

    def accept(self) -> None:
        """The peer has accepted the delivery and settled it. What counts for the peer, ``size``, is the caller's to take off."""
        self.delivery.watcher = None
        if self.lease is not None:
            try:
                self.lease.accepted()
            except Exception as failure:
                self._refusal(failure)

    def _confirm(self) -> None:
        """The receiver settles second, and waits for our word on its outcome."""
        delivery = self.delivery
        delivery.watcher = None
        refusal = self._finish(told=True)
        if refusal is not None:
            error = Error(condition=refusal.condition, description=refusal.description)
            delivery.state = Rejected(error=error)
        elif isinstance(delivery.state, Rejected):
            delivery.state = Rejected()  # an error in the answer would say that this was refused
        with suppress(LocalProtocolError):  # the node may have closed the link
            delivery.settle()

    def move(self, outlet: WatchedOutlet) -> None:
        """The delivery goes on there."""
        self.outlet.peer.remove_unsettled(self.size)
        self.outlet = outlet
        outlet.peer.add_unsettled(self.size)

    def expire(self) -> None:
        """The delivery's link will not come back, and what is said of it from now on does not count."""
        delivery = self.delivery
        delivery.link.session.settlement.release(delivery)
        delivery.watcher = None
        self._finish()

    def finish_now(self) -> None:
        """The receiver has spoken, and hears that we know once that is written: what it means for the node is part of it."""
        self.delivery.watcher = None
        self._finish(told=True)

    def _finish(self, *, released: bool = False, told: bool = False) -> RefusedError | None:
        """Tell the lease; returns what it has against that."""
        delivery, outlet, lease = self.delivery, self.outlet, self.lease
        delivery.watcher = None  # nothing more is to be heard of it, however often it is touched
        outlet.peer.remove_unsettled(self.size)
        if lease is None:
            return None
        try:
            if released:
                lease.released()
            elif told or delivery.settled:
                outlet.verdict(delivery, lease)
            else:
                outlet.lose(lease)
        except Exception as failure:
            return self._refusal(failure)
        return None

    def _refusal(self, failure: Exception) -> RefusedError | None:
        """What the lease has against an outcome, on which it raised this."""
        if isinstance(failure, RefusedError):
            return failure
        if isinstance(failure, LocalProtocolError):
            # A node that hands outcomes through finds its arrival's link gone.
            _log.debug("%r: %s", self.outlet, failure)
            return None
        _log.error("the outcome of a delivery of %r was not taken", self.outlet, exc_info=failure)
        return _FAILED

    # -- what the end of a transaction means for it (4.4.4) ---------------------------------

    def settle_as(self, outcome: Any) -> None:
        """The outcome counts now."""
        self._settle(outcome)
        self.delivery.settled = True  # also where its link went meanwhile: the outcome is known
        self._finish()

    def give_back(self) -> None:
        """It was acquired in vain: what is not sent of it yet need not be sent any more (4.4.3)."""
        delivery = self.delivery
        delivery.watcher = None
        partial = delivery.link.partial
        if partial is not None and partial.delivery is delivery:
            partial.abort()
        self._settle(RELEASED)
        self._finish(released=True)

    def leave_transaction(self) -> None:
        """It is a delivery like any other again, of which nothing was said."""
        self.work = None
        if isinstance(self.delivery.state, TransactionalState):  # else its receiver has spoken since
            self.delivery.state = None
        self.wake()

    def _settle(self, outcome: Any) -> None:
        self.work = None
        delivery = self.delivery
        delivery.state = outcome
        delivery.watcher = None
        if not delivery.settled:
            with suppress(LocalProtocolError):
                delivery.settle()


class AbsentWatch:
    """Stands where a watch was, from a restart until the peer has come back: it is woken in vain.

    Attributes:
        delivery: which.
        lease: on its message.
    """

    __slots__ = ("_size", "delivery", "lease", "touched")

    def __init__(self, delivery: OutgoingDelivery, size: int, lease: Lease) -> None:
        self.touched: bool = False
        self.delivery: OutgoingDelivery = delivery
        self.lease: Final = lease
        self._size = size

    def wake(self) -> None:
        """Nothing is heard without a link."""

    def move(self, outlet: WatchedOutlet) -> None:
        """The delivery goes on there."""
        self.delivery.watcher = DeliveryWatch(outlet, self.delivery, self._size, self.lease)

    def expire(self, default: Any) -> None:
        """The delivery's link will not come back: the default-outcome of its source counts, if it has one (3.5.3)."""
        if default is None:
            self.lease.lost()
        else:
            tell(self.lease, default)


def return_unsent(lease: Lease) -> None:
    """Give a message back that was not sent. What its node raises is logged: others may wait to be given back too."""
    attempt(lease.released)


def accept_sent(lease: Lease) -> None:
    """A message was sent settled, so that it is gone. What its node raises is logged: the link is not at fault."""
    attempt(lease.accepted)


def tell(lease: Lease, outcome: Any) -> None:
    """Call the one method of the lease that says this; what is none of the four gives the message back."""
    if isinstance(outcome, Accepted):
        lease.accepted()
    elif isinstance(outcome, Rejected):
        error = outcome.error
        if error is None:
            lease.rejected(None, None)
        else:
            lease.rejected(str(error.condition), error.description, error.info)
    elif isinstance(outcome, Modified):
        lease.modified(
            failed=bool(outcome.delivery_failed),
            undeliverable_here=bool(outcome.undeliverable_here),
            annotations=outcome.message_annotations,
        )
    else:
        lease.released()
