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
from trio_amqp10.errors import Condition, RemoteProtocolError
from trio_amqp10.peer.receiver import Receiver
from trio_amqp10.peer.sender import Sender
from trio_amqp10.rules import ONE_ATTACHMENT
from trio_amqp10.spec.messaging import RELEASED, Accepted
from trio_amqp10.spec.transactions import TransactionalState
from trio_amqp10.spec.transport import Error, SenderSettleMode

from .archive import OutletKeeper, why
from .loans import Loans
from .verdicts import tell
from .watch import Absent, Watch

if TYPE_CHECKING:
    from collections.abc import Callable

    from trio_amqp10.engine.delivery import OutgoingDelivery
    from trio_amqp10.engine.receiver import ReceiverLink
    from trio_amqp10.engine.sender import SenderLink
    from trio_amqp10.engine.terminus import SenderTerminus
    from trio_amqp10.message import Message
    from trio_amqp10.peer.delivery import Delivery
    from trio_amqp10.peer.session import Session

    from .conversation import Conversation
    from .node import Interest, Lease, Node
    from .stores.base import StoreError
    from .work import Work

__all__ = ["ReceiverInlet", "SenderOutlet"]

_log = logging.getLogger("trio_amqp10.container")

_ATTACHED: Final = LinkState.ATTACHED
_GONE: Final = LinkState.GONE
_SETTLED: Final = SenderSettleMode.SETTLED
_OVERHEAD: Final = 200
"""Octets that a delivery counts beyond its payload: what is kept to remember it."""


def steal(link: ReceiverInlet | SenderOutlet) -> None:
    """The same peer has attached a link of this name elsewhere: this one is over, and its terminus goes there (2.6.1)."""
    conn, end = link._conn, link._link  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
    conn.pump.feed(
        lambda: end.fail(ONE_ATTACHMENT.broken("attached anew, on another connection"), closed=False)
    )


def suspend(link: ReceiverInlet | SenderOutlet, condition: str, description: str) -> None:
    """Detach for now: the peer may attach again, and find all as it was."""
    conn, end = link._conn, link._link  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
    if end.state is _ATTACHED:
        fault = RemoteProtocolError(description, condition, scope="link")
        conn.pump.feed(lambda: end.fail(fault, closed=False))


class ReceiverInlet(Receiver):
    """A link on which a peer sends to a node.

    Attributes:
        peer: whose it is.
        key: names the link: its peer and its name (2.6.1).
    """

    __slots__ = ("_granting", "_node", "_over", "key", "peer")

    steal = steal

    def __init__(
        self, session: Session, link: ReceiverLink, credit: int, node: Node, peer: Conversation
    ) -> None:
        super().__init__(session, link, credit)
        self.peer = peer
        self.key: object = (peer.container_id, link.name)
        self._node = node
        self._over = False
        self._granting = credit

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
        while self._queue and not self.peer.resting:
            delivery = self._take()
            if delivery.remote_state.__class__ is not TransactionalState:
                return delivery
            self.peer.coordinator.post(self, self._node, delivery)
        return None

    def _post(self) -> None:
        """What came in transactions waits for their end, not for room in the node (4.4.1)."""
        kept: list[Delivery] = []
        posted: list[Delivery] = []
        for delivery in self._queue:
            (posted if isinstance(delivery.remote_state, TransactionalState) else kept).append(delivery)
        if posted:
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
            if self._queue and self.peer.coordinator.busy:
                self._post()
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

    suspend = suspend

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
            self.peer.forget(self, closed=self._link.terminus is None)

    def expire(self) -> None:
        """Nobody came back: what the node had not taken is the sender's still."""
        self._queue.clear()

    def _fail(self) -> None:
        _log.exception("%r failed, and with it %r", self._node, self)
        self.close(Condition.INTERNAL_ERROR.value, "the node failed")


class SenderOutlet(Sender):
    """A link on which a peer receives from a node.

    Attributes:
        peer: whose it is.
        key: names the link: its peer and its name (2.6.1).
        copying: whether messages are copied to it (3.5.7).
        interest: what the peer wants to have by it.
        wants: its filter, given a message and its sender's container-id; None for all (3.5.8).
    """

    __slots__ = ("_loans", "_node", "_outcomes", "_over", "copying", "interest", "key", "peer", "wants")

    def __init__(
        self,
        session: Session,
        link: SenderLink,
        node: Node,
        peer: Conversation,
        *,
        copying: bool,
        interest: Interest,
        wants: Callable[[Message, str | None], bool] | None = None,
    ) -> None:
        super().__init__(session, link)
        self.peer = peer
        self.key: object = (peer.container_id, link.name)
        self.copying = copying
        self.interest = interest
        self.wants = wants
        self._node = node
        self._over = False
        self._loans: Loans | None = None
        link.confirms = node.confirms
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

    @property
    def final(self) -> bool:
        """Whether the peer has closed the link, and not only detached it (2.6.6)."""
        return self._detached is not None and self._detached.closed

    def ready(self) -> bool:
        """Whether a message may go out now; if not, the node hears when it may."""
        link = self._link
        if link.sendable():
            if self._loans and (link.txn_id is not None or not self._loans.has_room(link.credit)):
                return False  # they wake us
            if link.txn_id is not None and not self.copying and not self.peer.coordinator.live(link.txn_id):
                return False
            return not self.peer.resting
        if link.credit and link.state is _ATTACHED:
            link.await_sendable()
        return False

    def give(self, message: Message, lease: Lease | None, tag: bytes | None = None) -> None:
        """Send now, without waiting; the lease hears of the outcome."""
        payload = message.to_payload()
        link = self._link
        work: Work | None = None
        if link.txn_id is not None and lease is not None:
            work = self.peer.coordinator.live(link.txn_id)
        if self._loans is None or lease is None or work is not None or link.snd_settle_mode == _SETTLED:
            self._send(payload, message.message_format, lease, tag, work)
        else:
            self._loans.add(payload, message.message_format, lease)

    def can_send(self) -> bool:
        """Whether ``send_lent`` would send; if not, the loans hear when it may."""
        link = self._link
        if link.credit and link.state is _ATTACHED and not link.sendable():
            link.await_sendable()
        return link.sendable()

    def send_lent(self, payload: bytes, message_format: int, lease: Lease, tag: bytes | None) -> None:
        """Send what the store knows of by now."""
        self._send(payload, message_format, lease, tag, None)

    def _send(
        self, payload: bytes, message_format: int, lease: Lease | None, tag: bytes | None, work: Work | None
    ) -> None:
        state = None if work is None else work.state
        delivery = self._link.send(payload, lease is None, tag, message_format, state)
        assert delivery is not None  # ready() said so
        if not delivery.settled:
            delivery.watcher = watch = Watch(self, delivery, len(payload) + _OVERHEAD, lease)
            if work is not None:
                work.acquire(watch)
        elif lease is not None:
            if work is None:
                lease.accepted()  # at most once: gone when it is sent
            else:
                work.consume(lease)

    def rest(self, more: int) -> None:
        """Tell how many more there are, and give credit back where the receiver drains (2.6.7)."""
        link = self._link
        link.available = more
        busy = link.in_progress or self.waiting or self._loans
        if link.drain and not busy and not (more and link.credit):
            link.drained()

    def wake(self) -> None:
        waited = self.waiting > 0
        if waited:
            super().wake()
        if self._over:
            return
        try:
            if self._loans and not self._is_over:
                self._loans.send()
            if self._is_over:
                self._end()
            elif not waited:  # else it is a producer's, who goes first
                if self._link.txn_id is not None:
                    self._enlist(self._link.txn_id)
                self._node.on_demand(self)
            elif self._link.txn_id is not None:
                self._enlist(self._link.txn_id)
        except Exception:
            self._fail()

    def _enlist(self, txn_id: Any) -> None:
        """The receiver wants what it gets to be acquired in a transaction (4.4.3)."""
        work = self.peer.coordinator.find(txn_id)
        if work is None:
            self.close(Condition.TRANSACTION_UNKNOWN_ID.value, "a flow with a txn-id that there is none of")
        elif not self._node.leasing and not self.copying:
            self.close(Condition.NOT_IMPLEMENTED.value, f"nothing of {self._node!r} can be acquired")
        else:
            work.enlist(self)
            self._link.flow_properties = {"txn-id": txn_id}

    def leave(self, txn_id: bytes) -> None:
        """A transaction is over: what is given from now on is not part of it, unless the receiver names another."""
        link = self._link
        if link.txn_id == txn_id:
            link.txn_id = link.flow_properties = None
            self._conn.engine.touch(self)

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
            if self._loans:
                self._loans.release()
            self.peer.forget(self, closed=self._link.terminus is None)

    def inherit(self, terminus: SenderTerminus) -> None:
        """Deliveries of an older link are this one's now."""
        for sent in terminus.unsettled.values():
            if isinstance(sent.delivery.watcher, (Watch, Absent)):
                sent.delivery.watcher.move(self)
        if isinstance(terminus.keeper, OutletKeeper):
            self._loans = Loans(self, terminus.keeper)

    suspend = suspend

    def expire(self) -> None:
        """Nobody came back: what became of all that is unsettled will not be known."""
        terminus = self._link.terminus
        for sent in () if terminus is None else list(terminus.unsettled.values()):
            if isinstance(sent.delivery.watcher, Watch):
                sent.delivery.watcher.expire()

    steal = steal

    def verdict(self, delivery: OutgoingDelivery, lease: Lease) -> None:
        """Tell the lease what the peer made of its message (3.4)."""
        tell(lease, self._final(delivery.state))

    def accepts(self, outcome: Any) -> bool:
        """Whether this counts as accepted here."""
        return isinstance(self._final(outcome), Accepted)

    def _final(self, outcome: Any) -> Any:
        if outcome is None or not self._permits(outcome):
            return getattr(self.remote.source, "default_outcome", None) or RELEASED
        return outcome

    def _permits(self, outcome: Any) -> bool:
        if self._outcomes is None:
            return True
        return f"amqp:{type(outcome).__name__.lower()}:list" in self._outcomes


def _error(condition: str | None, description: str | None) -> Error | None:
    return None if condition is None else Error(condition=condition, description=description)
