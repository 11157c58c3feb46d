"""Links of AMQP 1.0 as inlets and outlets of nodes: the thin adapter between ``peer/`` and nodes.

No task for a link and none for a delivery: an inlet or outlet is a receiver or sender whose
``wake``, which the connection calls when something came for it, calls its node at once; a watch
hangs on each delivery that went out, and is woken with its outcome. So a message that comes in for
somebody with credit is on its way out before the next octets are read.

What nodes raise stops here: it is logged, and the link is detached with ``amqp:internal-error``.

Knows links, and where outcomes go (3.4); does not know what any node does with a message.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Final

from trio_amqp10.engine.states import LinkState
from trio_amqp10.errors import Condition, LocalProtocolError
from trio_amqp10.peer.receiver import Receiver
from trio_amqp10.peer.sender import Sender
from trio_amqp10.spec.messaging import RELEASED, Accepted, Modified, Rejected
from trio_amqp10.spec.transport import Error

if TYPE_CHECKING:
    from collections.abc import Callable

    from trio_amqp10.engine.delivery import OutgoingDelivery
    from trio_amqp10.engine.receiver import ReceiverLink
    from trio_amqp10.engine.sender import SenderLink
    from trio_amqp10.message import Message
    from trio_amqp10.peer.delivery import Delivery
    from trio_amqp10.peer.session import Session

    from .conversation import Conversation
    from .node import Lease, Node

__all__ = ["ReceiverInlet", "SenderOutlet"]

_log = logging.getLogger("trio_amqp10.container")

_ATTACHED: Final = LinkState.ATTACHED
_GONE: Final = LinkState.GONE
_OVERHEAD: Final = 200
"""Octets that a delivery counts beyond its payload: what is kept to remember it."""


class ReceiverInlet(Receiver):
    """A link on which a peer sends to a node."""

    __slots__ = ("_node", "_over", "peer")

    def __init__(
        self, session: Session, link: ReceiverLink, credit: int, node: Node, peer: Conversation
    ) -> None:
        super().__init__(session, link, credit)
        self.peer = peer
        self._node = node
        self._over = False

    def begin(self) -> None:
        """The link is attached: the node gets to know it, and what came meanwhile."""
        try:
            self._node.add_inlet(self)
        except Exception:
            self._fail()
        else:
            self.wake()

    def take(self) -> Delivery | None:
        """The next delivery that came. What came whole is handed out even when its link is gone."""
        if not self._queue or self.peer.resting:
            return None
        return self._take()

    def wake(self) -> None:
        if self._tasks:
            super().wake()
        if self._over:
            return
        try:
            self._top_up()
            self._node.on_arrivals(self)
            if self._is_over:
                self._end()
        except Exception:
            self._fail()

    def close(self, condition: str | None = None, description: str | None = None) -> None:
        """Detach, without waiting for the peer's answer; what was not taken goes back."""
        if not self._closed:
            self._release_queued()
            self._closed = True
            self._link.detach(error=_error(condition, description))
        self._end()

    def _release_queued(self) -> None:
        if self._link.state is _ATTACHED:
            for delivery in self._queue:
                if not delivery.settled:
                    delivery.release()
        self._queue.clear()

    def _end(self) -> None:
        if not self._over:
            self._over = True
            self._node.remove_inlet(self)
            self.peer.forget(self)

    def _fail(self) -> None:
        _log.exception("%r failed, and with it %r", self._node, self)
        self.close(Condition.INTERNAL_ERROR.value, "the node failed")


class SenderOutlet(Sender):
    """A link on which a peer receives from a node.

    Attributes:
        peer: whose it is.
        key: names the link: its peer and its name (2.6.1).
        copying: whether messages are copied to it (3.5.7).
        wants: its filter, given a message and its sender's container-id; None for all (3.5.8).
    """

    __slots__ = ("_node", "_outcomes", "_over", "copying", "key", "peer", "wants")

    def __init__(
        self,
        session: Session,
        link: SenderLink,
        node: Node,
        peer: Conversation,
        *,
        copying: bool,
        wants: Callable[[Message, str | None], bool] | None = None,
    ) -> None:
        super().__init__(session, link)
        self.peer = peer
        self.key: object = (peer.container_id, link.name)
        self.copying = copying
        self.wants = wants
        self._node = node
        self._over = False
        source = None if link.remote is None else link.remote.source
        # An empty list permits every outcome (3.5.3).
        self._outcomes: frozenset[str] | None = frozenset(source.outcomes) or None if source else None

    def begin(self) -> None:
        """The link is attached: the node gets to know it, and the credit that came meanwhile."""
        try:
            self._node.add_outlet(self)
        except Exception:
            self._fail()
        else:
            self.wake()

    @property
    def target(self) -> str | None:
        """The address that the peer gives the place the messages go to."""
        return getattr(self.remote.target, "address", None)

    def ready(self) -> bool:
        """Whether a message may go out now; if not, the node hears when it may."""
        link = self._link
        if link.sendable():
            return not self.peer.resting
        if link.credit and link.state is _ATTACHED:
            link.await_sendable()
        return False

    def give(self, message: Message, lease: Lease | None) -> None:
        """Send now, without waiting; the lease hears of the outcome."""
        payload = message.to_payload()
        link = self._link
        delivery = link.send(payload, lease is None, None, message.message_format)
        assert delivery is not None  # ready() said so
        if not delivery.settled:
            delivery.watcher = _Watch(self, delivery, len(payload) + _OVERHEAD, lease)
        elif lease is not None:
            lease.accepted()  # at most once: gone when it is sent

    def rest(self, more: int) -> None:
        """Tell how many more there are, and give credit back where the receiver drains (2.6.7)."""
        link = self._link
        link.available = more
        if link.drain and not link.in_progress and not (more and link.credit) and not self._tasks:
            link.drained()

    def wake(self) -> None:
        waited = bool(self._tasks)
        if waited:
            super().wake()
        if self._over:
            return
        try:
            if self._is_over:
                self._end()
            elif not waited:  # else it is a producer's, who goes first
                self._node.on_demand(self)
        except Exception:
            self._fail()

    def _fail(self) -> None:
        _log.exception("%r failed, and with it %r", self._node, self)
        self.close(Condition.INTERNAL_ERROR.value, "the node failed")

    def close(self, condition: str | None = None, description: str | None = None) -> None:
        """Detach, without waiting for the peer's answer."""
        if not self._closed:
            self._closed = True
            self._link.detach(error=_error(condition, description))
        self._end()

    def _end(self) -> None:
        if not self._over:
            self._over = True
            self._node.remove_outlet(self)
            self.peer.forget(self)

    def verdict(self, delivery: OutgoingDelivery, lease: Lease) -> None:
        """Tell the lease what the peer made of its message (3.4)."""
        outcome: Any = delivery.state
        if outcome.__class__ is Accepted and self._outcomes is None:
            lease.accepted()
            return
        source = self.remote.source
        if outcome is None or not self._permits(outcome):
            outcome = getattr(source, "default_outcome", None) or RELEASED
        if isinstance(outcome, Accepted):
            lease.accepted()
        elif isinstance(outcome, Rejected):
            error = outcome.error
            if error is None:
                lease.rejected(None, None)
            else:
                lease.rejected(str(error.condition), error.description)
        elif isinstance(outcome, Modified):
            lease.modified(
                failed=bool(outcome.delivery_failed),
                undeliverable_here=bool(outcome.undeliverable_here),
                annotations=outcome.message_annotations,
            )
        else:
            lease.released()

    def _permits(self, outcome: Any) -> bool:
        if self._outcomes is None:
            return True
        return f"amqp:{type(outcome).__name__.lower()}:list" in self._outcomes


class _Watch:
    """Woken by the connection when the peer speaks of a delivery, or its link is gone."""

    __slots__ = ("_delivery", "_lease", "_outlet", "_size", "touched")

    def __init__(
        self, outlet: SenderOutlet, delivery: OutgoingDelivery, size: int, lease: Lease | None
    ) -> None:
        self.touched = False
        self._outlet = outlet
        self._delivery = delivery
        self._size = size
        self._lease = lease
        outlet.peer.retain(outlet, size)

    def wake(self) -> None:
        delivery = self._delivery
        if not delivery.settled and delivery.link.state is not _GONE:
            return  # how far it came so far (3.4.1)
        outlet = self._outlet
        outlet.peer.let_go(self._size)
        lease = self._lease
        if lease is None:
            return
        try:
            if delivery.settled:
                outlet.verdict(delivery, lease)
            else:
                lease.lost()
        except LocalProtocolError as gone:  # a node that hands outcomes through finds its arrival's link gone
            _log.debug("%r: %s", outlet, gone)
        except Exception:
            _log.exception("the outcome of a delivery of %r was not taken", outlet)


def _error(condition: str | None, description: str | None) -> Error | None:
    return None if condition is None else Error(condition=condition, description=description)
