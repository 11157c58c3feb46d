"""Links on which peers send, as inlets of nodes.

Grants credit, and withholds it while the container or the peer holds too much. Knows arriving deliveries; a node decides
their outcomes.
"""

from __future__ import annotations

from contextlib import suppress
from itertools import islice
from typing import TYPE_CHECKING, Final, cast

from trio_amqp10.amqp10.engine.states import LinkState
from trio_amqp10.amqp10.peer.credit import CreditWindow
from trio_amqp10.amqp10.peer.statistics import ReceiverStatistics, receiving_figures
from trio_amqp10.amqp10.spec.messaging import RELEASED, Modified, Rejected
from trio_amqp10.amqp10.spec.transactions import TransactionalState
from trio_amqp10.amqp10.spec.transport import Error
from trio_amqp10.broker.nodes.node import RefusedError
from trio_amqp10.broker.stores.base import error_for_peers
from trio_amqp10.core.errors import Condition, LocalProtocolError

from .link_end_base import LinkEnd
from .link_store import InletStore

if TYPE_CHECKING:
    from collections import deque
    from collections.abc import Callable

    from trio_amqp10.amqp10.engine.receiver import ReceiverLink
    from trio_amqp10.amqp10.engine.unsettled_state import ReceiverTerminus
    from trio_amqp10.amqp10.peer.delivery import Delivery, Outcome
    from trio_amqp10.amqp10.peer.incoming_links import IncomingLink
    from trio_amqp10.amqp10.peer.link_options import LinkOptions
    from trio_amqp10.amqp10.peer.session import Session
    from trio_amqp10.broker.nodes.node import Node
    from trio_amqp10.broker.stores.base import StoreError

    from .link_peer import LinkPeer
    from .native_message import Arriving

_ATTACHED = LinkState.ATTACHED


class ReceiverInlet(LinkEnd["ReceiverLink"]):
    """A link on which a peer sends to a node. See ``LinkEnd`` for more attributes.

    Attributes:
        peer: the connection of the link.
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
        sizes = [size for size in (link.max_message_size, node.max_message_size) if size is not None]
        link.max_message_size = min(sizes, default=None)
        self._weighed = 0
        """The number of deliveries at the front of the queue that the watermark counts."""

    @property
    def _queue(self) -> deque[Delivery]:
        """The deliveries that arrived and were not taken.

        It belongs to the engine, which replaces it when the first delivery arrives.
        """
        return cast("deque[Delivery]", self._link.queue)

    def statistics(self) -> ReceiverStatistics:
        return receiving_figures(self._link, self.node)

    # -- credit -----------------------------------------------------------------------------

    def inherit(self, terminus: ReceiverTerminus) -> None:
        """Take over the terminus, with its deliveries, of an older link."""
        self._link.terminus = terminus
        if isinstance(terminus.unsettled_store, InletStore):
            self._unsettled_store = terminus.unsettled_store

    def await_store(self) -> Callable[[StoreError | None], object]:
        """Give no credit before the durable terminus is on disk.

        Return a function that must be called when it is. A message that was sent earlier could stay in doubt for ever: after a
        restart the container would not know the link of its sender.
        """
        self._is_stored = False
        return self._on_stored

    def _on_stored(self, failure: StoreError | None) -> None:
        if failure is not None:
            self.suspend(*error_for_peers(failure))
        elif not self._over:
            self._is_stored = True
            self._top_up()

    def attach(self, incoming: IncomingLink, options: LinkOptions) -> None:
        """See ``LinkEnd.attach``; the first credit is sent together with the answer."""
        super().attach(incoming, options)
        if not self.closed:
            self._top_up()

    def _top_up(self) -> None:
        """Give more credit if it is low, unless it is withheld; then wake up later."""
        if self._window.is_low(self._link) and not self._is_withheld():
            unsettled_store = self._unsettled_store
            self._window.fill(self._link, None if unsettled_store is None else unsettled_store.room)

    def _is_withheld(self) -> bool:
        """Whether no credit may be given now.

        The container holds too much, or remembers too many deliveries of this peer or link.
        """
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

    @property
    def is_committed(self) -> bool:
        """False: messages of a transaction come by an inlet of their own."""
        return False

    def take(self) -> Arriving | None:
        """Return the next whole delivery, even if its link is gone."""
        link = self._link
        while link.queue and not self.peer.resting:
            delivery = self._take()
            if delivery.remote_state.__class__ is not TransactionalState:
                return delivery
            self.peer.coordinator.post(self, self._node, delivery)
        return None

    def _take(self) -> Arriving:
        """Remove and return the first delivery of the queue."""
        link = self._link
        queue = link.queue
        delivery = queue.popleft()
        if link.credit + len(queue) <= self._window.half:
            self._top_up()
        if self._weighed:
            self._weighed -= 1
            self._watermark.remove(len(delivery.payload))
        return delivery  # type: ignore[return-value]  # The connection makes all deliveries ``Arriving``.

    def permitted(self, delivery: Delivery, outcome: Outcome) -> Outcome | None:
        """Return the outcome, or another that the peer's source permits (3.5.3).

        If a rejection is not permitted, the link is closed and None is returned.
        """
        permits = self._link.permits
        if permits(outcome):
            return outcome
        if not isinstance(outcome, Rejected):
            for other in (RELEASED, Modified()):
                if permits(other):
                    return other
            outcome = Rejected(
                error=Error(
                    condition=Condition.PRECONDITION_FAILED,
                    description="the message was not accepted, and its source permits no such outcome (3.5.3)",
                )
            )
        error = outcome.error
        assert error is not None
        # A coordinator also closes the link (4.2), as does the anonymous terminus ("Using the Anonymous
        # Terminus", 2.2.2).
        self.close(error.condition, error.description, {"delivery-tag": delivery.tag})
        return None

    # -- memory of waiting deliveries -------------------------------------------------------

    def _refuse_more(self) -> None:
        """Reject deliveries that arrived after the container reached its memory limit.

        Deliveries that waited before keep waiting.
        """
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
        """Return how many deliveries of the queue arrived before this wake."""
        return self._weighed

    def _refuse(self, delivery: Delivery, refusal: RefusedError) -> None:
        if delivery.settled:  # No outcome can be sent, so the link is closed with the error.
            self.close(refusal.condition, refusal.description, {"delivery-tag": delivery.tag})
        else:
            with suppress(LocalProtocolError):  # The link is gone, so no outcome can reach the sender.
                delivery.reject(refusal.condition, refusal.description)

    def _weigh(self) -> None:
        """Count the waiting deliveries in the watermark."""
        for place in range(self._weighed - len(self._queue), 0):
            self._watermark.add(len(self._queue[place].payload))
        self._weighed = len(self._queue)

    def _unweigh_all(self) -> None:
        """Stop counting the waiting deliveries; those that stay are counted again later."""
        for delivery in islice(self._queue, self._weighed):
            self._watermark.remove(len(delivery.payload))
        self._weighed = 0

    def _post(self) -> None:
        """Move deliveries of transactions to these, to wait for the discharge (4.4.1).

        They do not wait for room in the node.
        """
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
                return  # A settled delivery of an unknown transaction has ended the link.
            if link.credit + len(link.queue) <= self._window.half:
                self._top_up()
            if self.peer.open:  # If not, this was read after the end of the connection.
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
        """Release waiting deliveries, and roll back the transactions they are part of."""
        link = self._link
        transactions = self.peer.coordinator
        for delivery in self._queue if transactions.works else ():
            if isinstance(delivery.remote_state, TransactionalState):
                lost = RefusedError(
                    Condition.ILLEGAL_STATE, "the link was detached before the node took the message"
                )
                transactions.refuse(delivery.remote_state.txn_id, lost)
        if link.state is _ATTACHED and link.permits(RELEASED):
            for delivery in self._queue:
                if not delivery.settled:
                    with suppress(LocalProtocolError):  # The peer has withdrawn the delivery.
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
        """Drop deliveries that the node has not taken: the peer did not resume the link.

        They have no outcome, so they still belong to the sender.
        """
        self._unweigh_all()
        self._queue.clear()
