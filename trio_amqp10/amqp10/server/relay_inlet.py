"""The permissions of links, and of messages to the anonymous terminus.

Knows links, and the questions to ``rights``; does not know who answers them.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

from trio_amqp10.amqp10.peer.incoming_links import IncomingReceiver, IncomingSender
from trio_amqp10.amqp10.spec.messaging import Source, Target
from trio_amqp10.amqp10.spec.transactions import Coordinator as CoordinatorTarget
from trio_amqp10.amqp10.spec.transactions import TransactionalState
from trio_amqp10.core.errors import RemoteProtocolError

from .inlets import ReceiverInlet

if TYPE_CHECKING:
    from trio_amqp10.amqp10.peer.delivery import Delivery
    from trio_amqp10.amqp10.peer.incoming_links import IncomingLink
    from trio_amqp10.broker.nodes.node import Node, RefusedError
    from trio_amqp10.broker.rights.access import Action
    from trio_amqp10.broker.rights.guard import Wish

    from .link_peer import LinkPeer
    from .native_message import Arriving


def wanted(link: IncomingLink, recovered: Source | Target | None = None) -> Wish | None:
    """Return what the peer wants to do with this link; None if nothing can be checked.

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
    """A link to the anonymous terminus, whose messages need permission one by one.

    A message is passed on when its sender may send to the address in ``to``. Messages keep their order, so a message whose
    permission takes time delays the messages after it.
    """

    __slots__ = ("_asking", "_at_once", "_verdicts")

    def __init__(self, session: Any, link: Any, credit: int, node: Node, peer: LinkPeer) -> None:
        super().__init__(session, link, credit, node, peer)
        self._asking = False
        self._at_once = False
        self._verdicts: deque[RefusedError | None] = deque()
        """The answers for the first deliveries in the queue, in order: None, or a refusal."""

    def wake(self) -> None:
        if self._over:
            return
        if self._watermark.high:
            self._refuse_more()
        self._decide()
        if not self._asking:
            super().wake()
        elif not self._over:
            self._weigh()  # Count the messages that wait for an answer.

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
        return None  # The relay rejects the message with the reason.
    return ("send", address) if isinstance(address, str) else None
