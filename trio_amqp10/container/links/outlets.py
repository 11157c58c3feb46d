"""Links on which peers receive, as outlets of nodes.

Knows where outcomes go (3.4); what the peer makes of one delivery is heard in ``watch``, and what must be on disk
before it may leave waits in ``loans``.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Final

from trio_amqp10.container.nodes.older_leases import completed
from trio_amqp10.container.protocols.amqp10.content import to_transfer
from trio_amqp10.engine.delivery import OUTCOMES
from trio_amqp10.engine.states import LinkState
from trio_amqp10.errors import Condition, LocalProtocolError, MessageSizeError
from trio_amqp10.peer.sender import Sender
from trio_amqp10.spec.messaging import RELEASED, Accepted, ExpiryPolicy
from trio_amqp10.spec.transport import SenderSettleMode

from .archive import OutletKeeper
from .detaching import error_of, steal, suspend
from .loans import Loans
from .verdicts import accept_sent, return_unsent, tell
from .watch import Absent, Watch

if TYPE_CHECKING:
    from trio_amqp10.container.nodes.content import Content
    from trio_amqp10.container.nodes.forms import Wants
    from trio_amqp10.container.nodes.node import Interest, Lease, Node
    from trio_amqp10.engine.delivery import OutgoingDelivery
    from trio_amqp10.engine.sender import SenderLink
    from trio_amqp10.engine.terminus import SenderTerminus
    from trio_amqp10.message import Message
    from trio_amqp10.peer.session import Session

    from .conversation import Conversation
    from .work import Work

__all__ = ["SenderOutlet"]

_log = logging.getLogger("trio_amqp10.container")

_ATTACHED: Final = LinkState.ATTACHED
_GONE: Final = LinkState.GONE
_SETTLED: Final = SenderSettleMode.SETTLED
_OVERHEAD: Final = 200
"""Octets that a delivery counts beyond its payload: what is kept to remember it."""


class SenderOutlet(Sender):
    """A link on which a peer receives from a node.

    Attributes:
        peer: whose it is.
        key: names the link: its peer, with the user that it proved to be, and its name (2.6.1).
        copying: whether messages are copied to it (3.5.7).
        interest: what the peer wants to have by it.
        wants: its filter, given a message and its sender's container-id; None for all (3.5.8).
    """

    __slots__ = ("_loans", "_node", "_over", "copying", "interest", "key", "peer", "wants")

    def __init__(
        self,
        session: Session,
        link: SenderLink,
        node: Node,
        peer: Conversation,
        *,
        copying: bool,
        interest: Interest,
        wants: Wants | None = None,
    ) -> None:
        super().__init__(session, link)
        self.peer = peer
        self.key: object = (peer.owner, link.name)
        self.copying = copying
        self.interest = interest
        self.wants = wants
        self._node = node
        self._over = False
        self._loans: Loans | None = None
        link.confirms = node.confirms

    def begin(self) -> None:
        """The link is attached: the node gets to know it, and the credit that came meanwhile."""
        try:
            self._node.add_outlet(self)
        except Exception:
            self.fail()
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

    @property
    def max_message_size(self) -> int | None:
        """Octets of the largest message that the peer takes; None for any size (2.7.3)."""
        return self._link.size_limit

    def ready(self) -> bool:
        """Whether a message may go out now; if not, the node hears when it may."""
        link = self._link
        if link.sendable():
            if self.peer.is_full(self):
                return False  # it wakes us
            if self._loans and (link.txn_id is not None or not self._loans.has_room(link.credit)):
                return False  # they wake us
            if link.txn_id is not None and not self.copying and not self.peer.coordinator.live(link.txn_id):
                return False
            return not self.peer.resting
        if link.credit and link.state is _ATTACHED:
            link.await_sendable()
        return False

    def give(self, content: Content | Message, lease: Lease | None, tag: bytes | None = None) -> None:
        """Send now, without waiting; the lease hears of the outcome. What fails ends this link, and is not raised."""
        try:
            self._give(content, lease, tag)
        except MessageSizeError as too_large:
            self._return(lease, Condition.MESSAGE_SIZE_EXCEEDED, str(too_large))
        except Exception:
            _log.exception("%r could not send a message of %r", self, self._node)
            self._return(lease, Condition.INTERNAL_ERROR, "a message could not be sent")

    def _return(self, lease: Lease | None, condition: Condition, description: str) -> None:
        """Nothing was sent: end the link, then give the message back, so that another link gets it."""
        self._close_anyway(condition, description)
        if lease is not None:
            return_unsent(lease)

    def _give(self, content: Content | Message, lease: Lease | None, tag: bytes | None) -> None:
        payload, message_format = to_transfer(content)
        link = self._link
        link.check_size(len(payload))
        if lease is not None and not hasattr(lease, "strike"):
            lease = completed(lease)
        work: Work | None = None
        if link.txn_id is not None and lease is not None:
            work = self.peer.coordinator.live(link.txn_id)
        if self._loans is None or lease is None or work is not None or link.snd_settle_mode == _SETTLED:
            self._send(payload, message_format, lease, tag, work)
        else:
            self._loans.add(payload, message_format, lease)

    def can_send(self) -> bool:
        """Whether ``send_lent`` would send; if not, the loans hear when it may."""
        link = self._link
        if link.credit and link.state is _ATTACHED and not link.sendable():
            link.await_sendable()
        return link.sendable()

    def send_lent(self, payload: bytes, message_format: int, lease: Lease, tag: bytes | None) -> None:
        """Send what the store knows of by now."""
        self._send(payload, message_format, lease, tag, None)

    def outgrow(self, size: int) -> None:
        """All that the node has for us is too large: detach, once nothing is unsettled."""
        link = self._link
        if link.unsettled or self._loans or link.in_progress:
            link.watch_unsettled = True
            link.await_sendable()
        else:
            self.close(
                Condition.MESSAGE_SIZE_EXCEEDED.value,
                f"{self._node.address!r} has only messages that are larger than the max-message-size "
                f"{link.size_limit} of this link, e.g. one of {size} octets (2.7.3)",
            )

    def _send(
        self, payload: bytes, message_format: int, lease: Lease | None, tag: bytes | None, work: Work | None
    ) -> None:
        state = None if work is None else work.state
        delivery = self._link.send(payload, lease is None, tag, message_format, state)
        if delivery is None:
            raise LocalProtocolError(f"{self!r} is not ready to send")
        if not delivery.settled:
            delivery.watcher = watch = Watch(self, delivery, len(payload) + _OVERHEAD, lease)
            if work is not None:
                work.acquire(watch)
        elif lease is not None:
            if work is None:
                accept_sent(lease)  # at most once: gone when it is sent
            else:
                work.consume(lease)

    def rest(self, more: int) -> None:
        """Tell how many more there are, and give credit back where the receiver drains (2.6.7)."""
        link = self._link
        if self._over:
            return
        link.available = more
        busy = link.in_progress or self.waiting or self._loans
        # What waits until something is settled is not available to a receiver that drains.
        if link.drain and not busy and (not (more and link.credit) or self.peer.is_full(self)):
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
                if not self._over:
                    self._node.on_demand(self)
            elif self._link.txn_id is not None:
                self._enlist(self._link.txn_id)
        except Exception:
            self.fail()

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

    def fail(self) -> None:
        """An exception is being handled: detach, whatever that raises."""
        _log.exception("%r failed, and with it %r", self._node, self)
        self._close_anyway(Condition.INTERNAL_ERROR, "the node failed")

    def _close_anyway(self, condition: Condition, description: str) -> None:
        try:
            self.close(condition.value, description)
        except Exception:
            _log.exception("%r could not be closed", self)

    def close(self, condition: str | None = None, description: str | None = None) -> None:
        """Detach, without waiting for the peer's answer."""
        try:
            if not self._closed:
                self._closed = True
                self._link.detach(error=error_of(condition, description))
        finally:
            self._end()

    def _end(self) -> None:
        if not self._over:
            self._over = True
            try:
                self._node.remove_outlet(self)
                if self._loans:
                    self._loans.release()
            finally:
                if self._link.state is _GONE and self._ends_with_link:
                    self._link.session.settlement.forget(self._link)
                self.peer.forget(self, closed=self._link.terminus is None)

    @property
    def _ends_with_link(self) -> bool:
        """Whether the peer asked for a source that is over with its detach (3.5.6); else what it says afterwards counts."""
        asked = getattr(self.remote.source, "expiry_policy", None)
        return self._link.terminus is None and asked == ExpiryPolicy.LINK_DETACH

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

    def lose(self, lease: Lease) -> None:
        """The link went, and what became of the message is not known: its source's default-outcome counts (3.5.3).

        Leases of a node that confirms outlast the link: the receiver may still say what became of the message.
        """
        default: Any = getattr(self._link.source, "default_outcome", None)
        if default is None or self._node.confirms:
            lease.lost()
        else:
            tell(lease, default)

    def accepts(self, outcome: Any) -> bool:
        """Whether this counts as accepted here."""
        return isinstance(self._final(outcome), Accepted)

    def _final(self, outcome: Any) -> Any:
        # A state that is no outcome says nothing of the message: one that is settled so has the default (3.5.3).
        if not isinstance(outcome, OUTCOMES) or not self._permits(outcome):
            # As our answer has it: the attach of a peer that recovers the link names no source (2.6.3).
            return getattr(self._link.source, "default_outcome", None) or RELEASED
        return outcome

    def _permits(self, outcome: Any) -> bool:
        permitted = self._link.outcomes
        return permitted is None or f"amqp:{type(outcome).__name__.lower()}:list" in permitted
