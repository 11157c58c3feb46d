"""Links on which peers send, as inlets of nodes."""

from __future__ import annotations

import logging
from contextlib import suppress
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, cast

from trio_amqp10.container.nodes.node import RefusedError
from trio_amqp10.engine.states import LinkState
from trio_amqp10.errors import Condition, LocalProtocolError
from trio_amqp10.peer.receiver import Receiver
from trio_amqp10.spec.messaging import RELEASED, Modified, Rejected
from trio_amqp10.spec.transactions import TransactionalState
from trio_amqp10.spec.transport import Error

from .archive import why
from .detaching import error_of, steal, suspend
from .verdicts import permits

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from trio_amqp10.container.nodes.node import Node
    from trio_amqp10.container.protocols.amqp10.arriving import Arriving
    from trio_amqp10.container.stores.base import StoreError
    from trio_amqp10.engine.receiver import ReceiverLink
    from trio_amqp10.peer.delivery import Delivery, Outcome
    from trio_amqp10.peer.options import LinkOptions
    from trio_amqp10.peer.session import Session

    from .conversation import Conversation

__all__ = ["ReceiverInlet"]

_log = logging.getLogger("trio_amqp10.container")

_ATTACHED: Final = LinkState.ATTACHED


class ReceiverInlet(Receiver):
    """A link on which a peer sends to a node.

    Attributes:
        peer: whose it is.
        key: names the link: its peer, with the user that it proved to be, and its name (2.6.1).
    """

    __slots__ = ("_granting", "_node", "_over", "_spares", "_watermark", "_weighed", "key", "peer")

    steal = steal

    def __init__(
        self, session: Session, link: ReceiverLink, credit: int, node: Node, peer: Conversation
    ) -> None:
        super().__init__(session, link, credit)
        self.peer = peer
        self.key: object = (peer.owner, link.name)
        self._node = node
        self._over = False
        self._granting = credit
        self._watermark = peer.watermark
        self._spares = node.spared
        link.sheds = node.sheds
        self._weighed = 0
        """Deliveries, the first that wait here, that are counted."""

    def await_store(self) -> Callable[[StoreError | None], object]:
        """Grant nothing before the terminus is on disk, which is to survive: call what is returned when it is.

        What were sent before could be doubted for ever, by a sender that comes back to a container which
        does not know its link.
        """
        self._window = 0
        return self._on_stored

    def _on_stored(self, failure: StoreError | None) -> None:
        if failure is not None:
            self.suspend(*why(failure))
        elif not self._over:
            self._window = self._granting
            self._top_up()

    def start(self, options: LinkOptions) -> None:
        """As ``Receiver.start``; no credit is given while the container holds too much."""
        if self._is_withheld():
            self._window, window = 0, self._window
            super().start(options)
            self._window = window
        else:
            super().start(options)

    def _is_withheld(self) -> bool:
        """Whether no credit is given now, since the container holds too much, or remembers too much for this peer; then this is woken."""
        if self._watermark.high and not self._spares:
            self._watermark.when_low(self.wake)
            return True
        return self.peer.remembers_too_much(self)

    def begin(self) -> None:
        """The link is attached: the node gets to know it, and what came meanwhile."""
        try:
            self._node.add_inlet(self)
        except Exception:
            self._fail()
        else:
            self.wake()

    def take(self) -> Arriving | None:
        """The next delivery that came. What came whole is handed out even when its link is gone."""
        while self._queue and not self.peer.resting:
            delivery = self._take()
            if self._weighed:
                self._unweigh(delivery)
            if delivery.remote_state.__class__ is not TransactionalState:
                return cast("Arriving", delivery)
            self.peer.coordinator.post(self, self._node, delivery)
        return None

    def permitted(self, delivery: Delivery, outcome: Outcome) -> Outcome | None:
        """The outcome, or one in its place that the peer's source has; a rejection without that ends the link (3.5.3)."""
        source = self.remote.source
        if permits(source, outcome):
            return outcome
        if not isinstance(outcome, Rejected):
            for other in (RELEASED, Modified()):
                if permits(source, other):
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

    def _top_up(self) -> None:
        """As ``Receiver._top_up``; no credit is given while the container holds too much."""
        if not self._is_withheld():
            super()._top_up()

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

    def _unweigh(self, delivery: Delivery) -> None:
        """The first does not wait here any more."""
        self._weighed -= 1
        self._watermark.remove(len(delivery.payload))

    def _unweigh_all(self) -> None:
        """They are about to leave; those that stay are counted anew."""
        for delivery in islice(self._queue, self._weighed):
            self._watermark.remove(len(delivery.payload))
        self._weighed = 0

    def _post(self) -> None:
        """What came in transactions waits for their end, not for room in the node (4.4.1)."""
        kept: list[Delivery] = []
        posted: list[Delivery] = []
        for delivery in self._queue:
            (posted if isinstance(delivery.remote_state, TransactionalState) else kept).append(delivery)
        if posted:
            self._unweigh_all()
            self._queue.clear()
            self._queue.extend(kept)
            for delivery in posted:
                self.peer.coordinator.post(self, self._node, delivery)

    def wake(self) -> None:
        if self.waiting:
            super().wake()
        if self._over:
            return
        try:
            if self._watermark.high:
                self._refuse_more()
            if self._queue and self.peer.coordinator.busy:
                self._post()
            if self._over:
                return  # what came in a transaction that there is none of has ended it
            self._top_up()
            self._node.on_arrivals(self)
            if self._queue:
                self._weigh()
            if self._is_over:
                self._end()
            elif self.peer.withheld:
                self.peer.look_again()
        except Exception:
            self._fail()

    def close(
        self,
        condition: str | None = None,
        description: str | None = None,
        info: Mapping[Any, Any] | None = None,
    ) -> None:
        """Detach, without waiting for the peer's answer; what was not taken goes back."""
        try:
            if not self._closed:
                self._closed = True
                self._release_queued()
                self._link.detach(error=error_of(condition, description, info))
        finally:
            self._end()

    suspend = suspend

    def _release_queued(self) -> None:
        if self._link.state is _ATTACHED:
            for delivery in self._queue:
                if not delivery.settled and permits(self.remote.source, RELEASED):
                    with suppress(LocalProtocolError):  # the peer took it back
                        delivery.release()
        self._unweigh_all()
        self._queue.clear()

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

    def _fail(self) -> None:
        _log.exception("%r failed, and with it %r", self._node, self)
        try:
            self.close(Condition.INTERNAL_ERROR.value, "the node failed")
        except Exception:
            _log.exception("%r could not be closed", self)
