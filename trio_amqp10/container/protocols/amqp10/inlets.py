"""Links on which peers send, as inlets of nodes."""

from __future__ import annotations

from contextlib import suppress
from itertools import islice
from typing import TYPE_CHECKING, Final, cast

from trio_amqp10.container.nodes.node import RefusedError
from trio_amqp10.engine.states import LinkState
from trio_amqp10.errors import Condition, LocalProtocolError
from trio_amqp10.peer.credit import CreditWindow
from trio_amqp10.peer.statistics import ReceiverStatistics, receiving_figures
from trio_amqp10.spec.messaging import RELEASED, Modified, Rejected
from trio_amqp10.spec.transactions import TransactionalState
from trio_amqp10.spec.transport import Error

from .link_end import LinkEnd
from .link_store import InletStore, why

if TYPE_CHECKING:
    from collections import deque
    from collections.abc import Callable

    from trio_amqp10.container.nodes.node import Node
    from trio_amqp10.container.protocols.amqp10.native_message import Arriving
    from trio_amqp10.container.stores.base import StoreError
    from trio_amqp10.engine.receiver import ReceiverLink
    from trio_amqp10.engine.unsettled_state import ReceiverTerminus
    from trio_amqp10.peer.delivery import Delivery, Outcome
    from trio_amqp10.peer.incoming_links import IncomingLink
    from trio_amqp10.peer.link_options import LinkOptions
    from trio_amqp10.peer.session import Session

    from .link_peer import LinkPeer

__all__ = ["ReceiverInlet"]

_ATTACHED = LinkState.ATTACHED


class ReceiverInlet(LinkEnd["ReceiverLink"]):
    """A link on which a peer sends to a node. See ``LinkEnd`` for more attributes.

    Attributes:
        peer: whose link it is.
    """

    __slots__ = ("_is_stored", "_spares", "_unsettled_store", "_watermark", "_weighed", "_window", "peer")

    def __init__(self, session: Session, link: ReceiverLink, credit: int, node: Node, peer: LinkPeer) -> None:
        super().__init__(session, link, node, peer.owner)
        self.peer: Final = peer
        self._window = CreditWindow(credit)
        self._is_stored = True
        self._unsettled_store: InletStore | None = None
        self._watermark = peer.watermark
        self._spares = node.exempt_from_watermark
        link.sheds = node.releases_arrivals
        self._weighed = 0
        """Deliveries, the first that wait here, that are counted."""

    @property
    def _queue(self) -> deque[Delivery]:
        """What came and was not taken; the engine's own, which is another once the first delivery has come."""
        return cast("deque[Delivery]", self._link.queue)

    def statistics(self) -> ReceiverStatistics:
        return receiving_figures(self._link, self.node)

    # -- credit -----------------------------------------------------------------------------

    def inherit(self, terminus: ReceiverTerminus) -> None:
        """Deliveries of an older link are this one's now."""
        self._link.terminus = terminus
        if isinstance(terminus.unsettled_store, InletStore):
            self._unsettled_store = terminus.unsettled_store

    def await_store(self) -> Callable[[StoreError | None], object]:
        """Grant nothing before the terminus is on disk, which is to survive: call what is returned when it is.

        What were sent before could be doubted for ever, by a sender that comes back to a container which
        does not know its link.
        """
        self._is_stored = False
        return self._on_stored

    def _on_stored(self, failure: StoreError | None) -> None:
        if failure is not None:
            self.suspend(*why(failure))
        elif not self._over:
            self._is_stored = True
            self._top_up()

    def attach(self, incoming: IncomingLink, options: LinkOptions) -> None:
        """As ``LinkEnd.attach``, with the first credit right behind."""
        super().attach(incoming, options)
        if not self.closed:
            self._top_up()

    def _top_up(self) -> None:
        """Grant more if the credit is low, unless it is withheld now; then this is woken."""
        if self._window.is_low(self._link) and not self._is_withheld():
            unsettled_store = self._unsettled_store
            self._window.fill(self._link, None if unsettled_store is None else unsettled_store.room)

    def _is_withheld(self) -> bool:
        """Whether no credit is given now: the container holds too much, or remembers too much for this peer or link."""
        if not self._is_stored:
            return True
        if self._watermark.high and not self._spares:
            self._watermark.when_low(self.wake)
            return True
        if self._unsettled_store is not None and not self._unsettled_store.has_room(self._touch):
            return True
        return self.peer.remembers_too_much(self)

    def _touch(self) -> None:
        self.session.connection.engine.touch(self)

    # -- messages ---------------------------------------------------------------------------

    def _enter_node(self) -> None:
        self._node.add_inlet(self)

    def take(self) -> Arriving | None:
        """The next delivery that came. What came whole is handed out even when its link is gone."""
        link = self._link
        while link.queue and not self.peer.resting:
            delivery = self._take()
            if delivery.remote_state.__class__ is not TransactionalState:
                return delivery
            self.peer.coordinator.post(self, self._node, delivery)
        return None

    def _take(self) -> Arriving:
        """Take the first of the queue."""
        link = self._link
        queue = link.queue
        delivery = queue.popleft()
        if link.credit + len(queue) <= self._window.half:
            self._top_up()
        if self._weighed:
            self._weighed -= 1
            self._watermark.remove(len(delivery.payload))
        return delivery  # type: ignore[return-value]  # the connection makes deliveries of our class

    def permitted(self, delivery: Delivery, outcome: Outcome) -> Outcome | None:
        """The outcome, or one in its place that the peer's source has; a rejection without that ends the link (3.5.3)."""
        permits = self._link.permits
        if permits(outcome):
            return outcome
        if not isinstance(outcome, Rejected):
            for other in (RELEASED, Modified()):
                if permits(other):
                    return other
            outcome = Rejected(
                error=Error(condition=Condition.PRECONDITION_FAILED, description="not accepted")
            )
        error = outcome.error
        assert error is not None
        # As a coordinator does (4.2), and the anonymous terminus ("Using the Anonymous Terminus", 2.2.2).
        self.close(error.condition, error.description, {"delivery-tag": delivery.tag})
        return None

    # -- what waits here, and what the container has no memory for ---------------------------

    def _refuse_more(self) -> None:
        """Reject what came since the container holds too much; what waited here before, waits on."""
        queue = self._queue
        if self._spares or len(queue) <= self._first_new():
            return
        refused = [queue.pop() for _ in range(len(queue) - self._first_new())]
        refusal = RefusedError(Condition.RESOURCE_LIMIT_EXCEEDED, self._watermark.describe())
        for delivery in reversed(refused):
            self._watermark.refused += 1
            if isinstance(delivery.remote_state, TransactionalState):
                self.peer.coordinator.post(self, self._node, delivery, refusal)
            else:
                self._refuse(delivery, refusal)

    def _first_new(self) -> int:
        """How many of the queue were taken into account before."""
        return self._weighed

    def _refuse(self, delivery: Delivery, refusal: RefusedError) -> None:
        if delivery.settled:  # its sender awaits no answer, so the link is what can be refused
            self.close(refusal.condition, refusal.description, {"delivery-tag": delivery.tag})
        else:
            with suppress(LocalProtocolError):  # its link is gone: its sender cannot hear it
                delivery.reject(refusal.condition, refusal.description)

    def _weigh(self) -> None:
        """Count what waits here."""
        for place in range(self._weighed - len(self._queue), 0):
            self._watermark.add(len(self._queue[place].payload))
        self._weighed = len(self._queue)

    def _unweigh_all(self) -> None:
        """They are about to leave; those that stay are counted anew."""
        for delivery in islice(self._queue, self._weighed):
            self._watermark.remove(len(delivery.payload))
        self._weighed = 0

    def _post(self) -> None:
        """What came in transactions waits for their end, not for room in the node (4.4.1)."""
        retained: list[Delivery] = []
        posted: list[Delivery] = []
        for delivery in self._queue:
            (posted if isinstance(delivery.remote_state, TransactionalState) else retained).append(delivery)
        if posted:
            self._unweigh_all()
            self._queue.clear()
            self._queue.extend(retained)
            for delivery in posted:
                self.peer.coordinator.post(self, self._node, delivery)

    def wake(self) -> None:
        if self._over:
            return
        link = self._link
        try:
            if self._watermark.high:
                self._refuse_more()
            if link.queue and self.peer.coordinator.works:
                self._post()
            if self._over:
                return  # what came in a transaction that there is none of has ended it
            if link.credit + len(link.queue) <= self._window.half:
                self._top_up()
            self._node.on_arrivals(self)
            if link.queue:
                self._weigh()
            if link.state is not _ATTACHED:
                self._end()
            elif self.peer.withheld:
                self.peer.look_again()
        except Exception:
            self.fail()

    # -- the end ----------------------------------------------------------------------------

    def _before_detach(self) -> None:
        """What was not taken goes back; what is part of a transaction rolls it back."""
        link = self._link
        transactions = self.peer.coordinator
        for delivery in self._queue if transactions.works else ():
            if isinstance(delivery.remote_state, TransactionalState):
                lost = RefusedError(Condition.ILLEGAL_STATE, "its link was detached before a node had it")
                transactions.refuse(delivery.remote_state.txn_id, lost)
        if link.state is _ATTACHED and link.permits(RELEASED):
            for delivery in self._queue:
                if not delivery.settled:
                    with suppress(LocalProtocolError):  # the peer took it back
                        delivery.release()
        self._unweigh_all()
        link.queue.clear()

    def _end(self) -> None:
        if not self._over:
            self._over = True
            self._unweigh_all()
            self._watermark.forget(self.wake)
            self._node.remove_inlet(self)
            self.peer.forget(self, closed=self._link.terminus is None)

    def expire(self) -> None:
        """Nobody came back: what the node had not taken is the sender's still."""
        self._unweigh_all()
        self._queue.clear()
