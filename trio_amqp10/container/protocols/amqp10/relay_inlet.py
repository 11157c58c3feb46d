"""What a link needs permission for; to the anonymous terminus, each message.

Knows links, and what ``rights`` is asked; does not know who answers.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

from trio_amqp10.errors import RemoteProtocolError
from trio_amqp10.peer.incoming_links import IncomingReceiver, IncomingSender
from trio_amqp10.spec.messaging import Source, Target
from trio_amqp10.spec.transactions import Coordinator as CoordinatorTarget
from trio_amqp10.spec.transactions import TransactionalState

from .inlets import ReceiverInlet

if TYPE_CHECKING:
    from trio_amqp10.container.nodes.node import Node, RefusedError
    from trio_amqp10.container.protocols.amqp10.native_message import Arriving
    from trio_amqp10.container.rights.access import Action
    from trio_amqp10.container.rights.guard import Wish
    from trio_amqp10.peer.delivery import Delivery
    from trio_amqp10.peer.incoming_links import IncomingLink

    from .link_peer import LinkPeer

__all__ = ["RelayInlet", "wanted"]


def wanted(link: IncomingLink, recovered: Source | Target | None = None) -> Wish | None:
    """What the peer wants to do with this link; None where there is nothing to ask, or nothing that could be.

    ``recovered`` is the terminus that is kept for a link whose attach names none (2.6.3).
    """
    if isinstance(link, IncomingReceiver):
        target = recovered or link.remote.target
        if isinstance(target, CoordinatorTarget):
            return "transact", None
        return _wish("send", target) if isinstance(target, Target) else None
    assert isinstance(link, IncomingSender)
    source = recovered or link.remote.source
    return _wish("receive", source) if isinstance(source, Source) else None


def _wish(action: Action, terminus: Source | Target) -> Wish | None:
    if terminus.dynamic:
        return "create", None
    address: Any = terminus.address
    return (action, address) if isinstance(address, str) else None


class RelayInlet(ReceiverInlet):
    """A link to the anonymous terminus: a message goes on once its sender may send to where its ``to`` says.

    Messages keep their order, so one whose answer takes its time holds up those behind it.
    """

    __slots__ = ("_asking", "_at_once", "_verdicts")

    def __init__(self, session: Any, link: Any, credit: int, node: Node, peer: LinkPeer) -> None:
        super().__init__(session, link, credit, node, peer)
        self._asking = False
        self._at_once = False
        self._verdicts: deque[RefusedError | None] = deque()
        """On as many of the first deliveries in the queue."""

    def wake(self) -> None:
        if self._over:
            return
        if self._watermark.high:
            self._refuse_more()
        self._decide()
        if not self._asking:
            super().wake()
        elif not self._over:
            self._weigh()  # what waits for an answer

    def _first_new(self) -> int:
        return max(self._weighed, len(self._verdicts) + self._asking)

    def _decide(self) -> None:
        self._at_once = True
        guard = self.peer.guard
        while not self._asking and len(self._verdicts) < len(self._queue):
            self._asking = True
            guard.pending_answers += 1
            guard.ask(_wish_of(self._queue[len(self._verdicts)]), self._on_answer)
        self._at_once = False

    def _on_answer(self, refusal: RefusedError | None) -> None:
        guard = self.peer.guard
        guard.pending_answers -= 1
        self._asking = False
        self._verdicts.append(refusal)
        if not self._at_once:
            self.wake()
            if not guard.pending_answers:
                self.peer.coordinator.read_requests()

    def _post(self) -> None:
        judged = list(zip(self._queue, self._verdicts, strict=True))
        self._unweigh_all()
        self._queue.clear()
        self._verdicts.clear()
        for delivery, refusal in judged:
            if isinstance(delivery.remote_state, TransactionalState):
                self.peer.coordinator.post(self, self._node, delivery, refusal)
            else:
                self._queue.append(delivery)
                self._verdicts.append(refusal)

    def take(self) -> Arriving | None:
        while self._verdicts and self._queue and not self.peer.resting:
            refusal = self._verdicts.popleft()
            delivery = self._take()
            if delivery.remote_state.__class__ is TransactionalState:
                self.peer.coordinator.post(self, self._node, delivery, refusal)
            elif refusal is None:
                return delivery
            else:
                self._refuse(delivery, refusal)
        return None

    def _before_detach(self) -> None:
        super()._before_detach()
        self._verdicts.clear()


def _wish_of(delivery: Delivery) -> Wish | None:
    try:
        address: Any = delivery.message.to
    except RemoteProtocolError:
        return None  # goes nowhere: the relay says why
    return ("send", address) if isinstance(address, str) else None
