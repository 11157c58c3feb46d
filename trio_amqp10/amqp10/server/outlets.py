"""Links on which peers receive, as outlets of nodes.

Knows the default outcome of a link (3.4); ``delivery_watch`` waits for the outcome of one delivery, and messages that
must be on disk before they are sent wait in ``pending_sends``.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Final

from trio_amqp10.amqp10.engine.delivery import OUTCOMES
from trio_amqp10.amqp10.engine.states import LinkState
from trio_amqp10.amqp10.peer.statistics import SenderStatistics, sending_figures
from trio_amqp10.amqp10.spec.messaging import Accepted, ExpiryPolicy
from trio_amqp10.amqp10.spec.transport import SenderSettleMode
from trio_amqp10.broker.nodes.content import Content
from trio_amqp10.broker.nodes.node import NotTakenError, label
from trio_amqp10.broker.nodes.refusals import OutletKey
from trio_amqp10.broker.stores.base import error_for_peers
from trio_amqp10.core.errors import Condition, LocalProtocolError, MessageSizeError

from .delivery_watch import AbsentWatch, DeliveryWatch, accept_sent, report_outcome, return_unsent
from .link_end_base import LinkEnd
from .link_store import OutletStore
from .native_message import to_transfer
from .pending_sends import PendingSends

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from trio_amqp10.amqp10.engine.delivery import OutgoingDelivery
    from trio_amqp10.amqp10.engine.events import LinkDetached
    from trio_amqp10.amqp10.engine.sender import SenderLink
    from trio_amqp10.amqp10.engine.unsettled_state import SenderTerminus
    from trio_amqp10.amqp10.message import Message
    from trio_amqp10.amqp10.peer.sender import Sender
    from trio_amqp10.amqp10.peer.session import Session
    from trio_amqp10.broker.nodes.form_registry import Wants
    from trio_amqp10.broker.nodes.node import Lease, Node, SubscriptionTerms
    from trio_amqp10.broker.stores.base import StoreError

    from .link_peer import LinkPeer
    from .transactional_work import TransactionalWork

_log = logging.getLogger("trio_amqp10.container")

_ATTACHED: Final = LinkState.ATTACHED
_GONE: Final = LinkState.GONE
_SETTLED: Final = SenderSettleMode.SETTLED
_OVERHEAD: Final = 200
"""Octets that an unsettled delivery takes in memory beside its payload."""


class SenderOutlet(LinkEnd["SenderLink"]):
    """A link on which a peer receives from a node. See ``LinkEnd`` for the rest.

    Attributes:
        key: the key by which queues remember the link, as long as its terminus exists (3.4.5).
        peer: the connection of the link.
        copying: whether messages are copied to it (3.5.7).
        subscription_terms: the terms of the subscription that the peer asks for.
        wants: its filter, given a message and its sender's container-id; None for all (3.5.8).
    """

    __slots__ = (
        "_inherited",
        "_pending_sends",
        "_sender",
        "copying",
        "key",
        "peer",
        "subscription_terms",
        "wants",
    )

    def __init__(
        self,
        session: Session,
        link: SenderLink,
        node: Node,
        peer: LinkPeer,
        *,
        copying: bool,
        subscription_terms: SubscriptionTerms,
        wants: Wants | None = None,
    ) -> None:
        super().__init__(session, link, node, peer.owner)
        self.key: OutletKey = OutletKey()
        self.peer: Final = peer
        self.copying: Final = copying
        self.subscription_terms: SubscriptionTerms = subscription_terms
        self.wants: Final = wants
        self._inherited = False
        self._pending_sends: PendingSends | None = None
        self._sender: Sender | None = None
        link.confirms = node.may_refuse_outcomes
        if peer.journal is not None:
            link.outcome_store = self
        link.accepted = []

    def _enter_node(self) -> None:
        self._node.add_outlet(self)

    def statistics(self) -> SenderStatistics:
        waiting = 0 if self._sender is None else self._sender.blocked
        return sending_figures(self._link, self.node, waiting=waiting)

    @property
    def sender(self) -> Sender:
        """The link as a ``Sender``, for tasks of the program; made at the first use.

        A task can wait in it for credit and for outcomes. The node is notified of demand only while no task waits in it.
        """
        if self._sender is None:
            self._sender = sender = self.session.connection.kinds.sender(self.session, self._link)
            sender.opened()
            self._link.owner = self  # The outlet passes all events on to the sender.
        return self._sender

    async def flush(self) -> None:
        """See ``Outlet.flush``.

        Raises:
            LinkDetachedError, SessionEndedError, ConnectionClosedError: the link ended first.

        Cancelled: nothing is lost; call it again.
        """
        try:
            await self.sender.flush()
        finally:
            self.wake()

    async def aclose(self) -> None:
        """See ``Outlet.aclose``; wait for the peer's answer as ``Sender.aclose`` does.

        Cancelled: no more messages are sent; only the peer's answer is not awaited.
        """
        try:
            await self.sender.aclose()
        finally:
            self.wake()

    def close(
        self,
        condition: str | None = None,
        description: str | None = None,
        info: Mapping[Any, Any] | None = None,
    ) -> None:
        try:
            super().close(condition, description, info)
        finally:
            if self._sender is not None:
                self._sender.abandon()

    @property
    def target(self) -> str | None:
        """The address of the peer's target."""
        return getattr(self.remote.target, "address", None)

    @property
    def max_message_size(self) -> int | None:
        """Octets of the largest message that the peer takes; None for any size (2.7.3)."""
        return self._link.size_limit

    def ready(self) -> bool:
        """Whether a message may be sent now; if not, the node is notified when it may."""
        link = self._link
        if link.sendable():
            if self.peer.is_full(self):
                return False  # The peer wakes this outlet.
            if self._pending_sends and (
                link.txn_id is not None or not self._pending_sends.has_room(link.credit)
            ):
                return False  # The pending sends wake this outlet.
            if link.txn_id is not None and not self.copying and not self.peer.coordinator.live(link.txn_id):
                return False  # The transaction was rolled back, so nothing more can be acquired in it.
            return not self.peer.resting or self._node.holds_replies
        if link.credit and link.state is _ATTACHED:
            # The link has credit, but the session window, the output buffer or a partial message blocks it.
            link.await_sendable()
        return False

    def give(self, content: Content | Message, lease: Lease | None, tag: bytes | None = None) -> None:
        """Send now, without waiting; report the outcome to the lease later.

        Any error but the one below ends this link, and is not raised.

        Raises:
            NotTakenError: the link cannot take this message, and the node offers other messages instead
                (``Node.passes_over``).
        """
        link = self._link
        work: TransactionalWork | None = None
        try:
            if isinstance(content, Content) and content.number >= 0:
                payload, message_format = content.octets, content.number
            else:
                payload, message_format = self._translated(content)
            if link.size_limit is not None and len(payload) > link.size_limit:
                raise self._too_large(len(payload), link.size_limit)
            if lease is not None and link.txn_id is not None:
                work = self.peer.coordinator.live(link.txn_id)
            if (
                self._pending_sends is None
                or lease is None
                or work is not None
                or link.snd_settle_mode == _SETTLED
            ):
                self._send(payload, message_format, lease, tag, work)
            else:
                self._pending_sends.add(payload, message_format, lease)
        except NotTakenError:
            raise
        except MessageSizeError as too_large:
            self._return(lease, Condition.MESSAGE_SIZE_EXCEEDED, str(too_large))
        except Exception:
            _log.exception("%r could not send a message of %r", self, self._node)
            self._return(lease, Condition.INTERNAL_ERROR, "a message could not be sent")

    def _translated(self, content: Content | Message) -> tuple[bytes, int]:
        """Return payload and message-format of a message that must be converted.

        It is a message of another protocol, or made by a node.
        """
        try:
            return to_transfer(content)
        except Exception as fault:
            if not self._node.passes_over:
                raise
            raise NotTakenError(f"the message cannot be translated: {fault!r}") from fault

    def _too_large(self, size: int, limit: int) -> Exception:
        """Return the error for a message that is too large after translation (2.7.3)."""
        too_large = MessageSizeError(size, limit)
        return NotTakenError(str(too_large)) if self._node.passes_over else too_large

    def _return(self, lease: Lease | None, condition: Condition, description: str) -> None:
        """End the link, then release the message, so that another link gets it."""
        self._close_anyway(condition, description)
        if lease is not None:
            return_unsent(lease)

    def can_send(self) -> bool:
        """Whether ``send_leased`` can send; if not, the pending sends are notified later."""
        link = self._link
        if link.credit and link.state is _ATTACHED and not link.sendable():
            link.await_sendable()
        return link.sendable()

    def send_leased(self, payload: bytes, message_format: int, lease: Lease, tag: bytes | None) -> None:
        """Send a message whose lease is safe in the store."""
        self._send(payload, message_format, lease, tag, None)

    def outgrow(self, size: int) -> None:
        """Detach once nothing is unsettled: all messages of the node are too large."""
        link = self._link
        if link.unsettled or self._pending_sends or link.in_progress:
            link.watch_unsettled = True
            link.await_sendable()
        else:
            self.close(
                Condition.MESSAGE_SIZE_EXCEEDED.value,
                f"{self._node.address!r} has only messages that are larger than the max-message-size "
                f"{link.size_limit} of this link, e.g. one of {size} octets (2.7.3)",
            )

    def _send(
        self,
        payload: bytes,
        message_format: int,
        lease: Lease | None,
        tag: bytes | None,
        work: TransactionalWork | None,
    ) -> None:
        state = None if work is None else work.state
        delivery = self._link.send(payload, lease is None, tag, message_format, state)
        if delivery is None:
            raise LocalProtocolError(f"{self!r} is not ready to send")
        if not delivery.settled:
            delivery.watcher = watch = DeliveryWatch(self, delivery, len(payload) + _OVERHEAD, lease)
            if work is not None:
                work.acquire(watch)
        elif lease is not None:
            if work is None:
                accept_sent(lease)  # A message that is sent settled is gone at once (at most once).
            else:
                work.consume(lease)

    def rest(self, more: int) -> None:
        """Report how many messages remain; return credit if the receiver drains (2.6.7)."""
        link = self._link
        if self._over:
            return
        link.available = more
        busy = link.in_progress or self._waiting or self._pending_sends
        # Messages that wait until the peer settles are not available to a receiver that drains.
        if link.drain and not busy and (not (more and link.credit) or self.peer.is_full(self)):
            link.drained()

    @property
    def _waiting(self) -> bool:
        """Whether a task waits in the sender; such a task sends first."""
        return self._sender is not None and self._sender.waiting > 0

    def _take_accepted(self, accepted: list[OutgoingDelivery]) -> None:
        """Report deliveries that the peer has accepted and settled."""
        size = count = 0
        for delivery in accepted:
            watch = delivery.watcher
            if isinstance(watch, DeliveryWatch) and watch.work is None:
                size += watch.size
                count += 1
                watch.accept()
            elif watch is not None:
                # A task or a transaction waits for it. None: the outcome was reported already.
                watch.wake()
        if count:
            self.peer.remove_unsettled(size, count)

    def wake(self) -> None:
        link = self._link
        if link.accepted:
            accepted, link.accepted = link.accepted, []
            self._take_accepted(accepted)
        waited = self._waiting
        if waited:
            self.sender.wake()
        if self._over:
            return
        try:
            attached = link.state is _ATTACHED
            if attached and self._pending_sends:
                self._pending_sends.send()
                attached = link.state is _ATTACHED
            if not attached:
                self._end()
                return
            if link.txn_id is not None:
                self._enlist(link.txn_id)
            if not waited and not self._over:
                self._node.on_demand(self)
        except Exception:
            self.fail()

    def on_detached(self, event: LinkDetached) -> None:
        if self._sender is not None:
            self._sender.on_detached(event)
        super().on_detached(event)

    def _enlist(self, txn_id: Any) -> None:
        """Acquire further messages in the transaction that the receiver names (4.4.3)."""
        work = self.peer.coordinator.find(txn_id)
        if work is None:
            self.close(
                Condition.TRANSACTION_UNKNOWN_ID.value, "a flow names a transaction that does not exist"
            )
        elif not self._node.leases_messages and not self.copying:
            self.close(
                Condition.NOT_IMPLEMENTED.value, f"messages of {label(self._node)} cannot be acquired (4.4.3)"
            )
        else:
            work.enlist(self)
            self._link.flow_properties = {"txn-id": txn_id}

    def leave(self, txn_id: bytes) -> None:
        """Send further messages outside of this transaction, which is over.

        The receiver may have named another transaction meanwhile.
        """
        link = self._link
        if link.txn_id == txn_id:
            link.txn_id = link.flow_properties = None
            self.session.connection.engine.touch(self)

    def _end(self) -> None:
        if not self._over:
            self._over = True
            try:
                self._node.remove_outlet(self)
                if self._pending_sends:
                    self._pending_sends.release()
            finally:
                if self._link.state is _GONE and self._ends_with_link:
                    self._link.session.settlement.forget(self._link)
                self.peer.forget(self, closed=self._link.terminus is None)
                if not self._inherited:
                    self.key.end()

    @property
    def _ends_with_link(self) -> bool:
        """Whether the peer's source expires with its detach (3.5.6).

        If not, outcomes that the peer sends after its detach still count.
        """
        asked = getattr(self.remote.source, "expiry_policy", None)
        return self._link.terminus is None and asked == ExpiryPolicy.LINK_DETACH

    def inherit(self, terminus: SenderTerminus, key: OutletKey) -> None:
        """Take over the deliveries and refusals of an older link."""
        self.key = key
        self._inherited = True
        self._link.terminus = terminus
        for sent in terminus.unsettled.values():
            if isinstance(sent.delivery.watcher, (DeliveryWatch, AbsentWatch)):
                sent.delivery.watcher.move(self)
        if isinstance(terminus.unsettled_store, OutletStore):
            self._pending_sends = PendingSends(self, terminus.unsettled_store)

    def await_store(self) -> Callable[[StoreError | None], object]:
        """Return a function for the moment when the durable terminus is on disk.

        It must also be called if that could not be written.
        Messages may be sent before: each waits for its own row, which is written later.
        """
        return self._on_stored

    def _on_stored(self, failure: StoreError | None) -> None:
        if failure is not None:  # After a restart, nothing would be known of the link or its deliveries.
            self.suspend(*error_for_peers(failure))

    def expire(self) -> None:
        """End the unsettled deliveries: the peer did not resume the link in time."""
        terminus = self._link.terminus
        for sent in () if terminus is None else list(terminus.unsettled.values()):
            if isinstance(sent.delivery.watcher, DeliveryWatch):
                sent.delivery.watcher.expire()

    def report(self, delivery: OutgoingDelivery, lease: Lease) -> None:
        """Report the outcome of a delivery to the lease of its message (3.4)."""
        report_outcome(lease, self._final(delivery.state))

    def record_outcome(self, delivery: OutgoingDelivery, then: Callable[[], object]) -> None:
        """See ``OutcomeStore.record_outcome``.

        The effect on a stored message is written, so that the message does not come again after a restart.
        """
        watch = delivery.watcher
        if isinstance(watch, DeliveryWatch) and watch.finish_in_commit():
            self.after(then)
        else:
            then()

    def after(self, then: Callable[[], object]) -> None:
        """See ``OutcomeStore.after``.

        If the store fails, the link is detached: what has become of the deliveries is not known.
        """

        def done(failure: StoreError | None) -> None:
            self._on_stored(failure)
            if failure is None:
                then()

        assert self.peer.journal is not None
        self.peer.journal.after(done)

    def lose(self, lease: Lease) -> None:
        """Report an unknown outcome: the default-outcome of the source counts (3.5.3).

        The link is gone. At a node that may refuse outcomes, the default does not count: its lease outlasts the link,
        because the receiver may still send an outcome.
        """
        default: Any = getattr(self._link.source, "default_outcome", None)
        if default is None or self._node.may_refuse_outcomes:
            lease.lost()
        else:
            report_outcome(lease, default)

    def accepts(self, outcome: Any) -> bool:
        """Whether the message is gone after this outcome."""
        return isinstance(self._final(outcome), Accepted)

    def _final(self, outcome: Any) -> Any:
        """Return the outcome that counts.

        A delivery that is settled with a state that is no outcome gets the default outcome (3.5.3).
        """
        link = self._link
        return link.permitted(outcome) if isinstance(outcome, OUTCOMES) else link.default_outcome

    def raise_if_outcome_lost(self, delivery: Any) -> None:
        """See ``LinkOwner``: only deliveries of the sender are awaited."""
        self.sender.raise_if_outcome_lost(delivery)
