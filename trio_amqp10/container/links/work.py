"""What is done in one transaction and not yet decided: messages held back, outcomes, acquisitions (4.4).

================  ==============================  ====================================================
the work          at the commit                   at a rollback
================  ==============================  ====================================================
posted            goes to its node, in order      is dropped
retired           the outcome counts              the outcome is as never said; a delivery that its
                                                  receiver has settled gets its default outcome
acquired          stays with its receiver         goes back to the node
================  ==============================  ====================================================

With a store, the commit begins there: all messages that come and all that go are one write, and what
the table says is done once that has succeeded. Until then nobody sees any of it.

To a node a transaction is invisible: messages come to it at the commit, from an inlet that was
there since the first of them was posted, so that a temporary node waits for them; and leases are
answered when all is decided.

Knows deliveries and their states on one side, and inlets and leases on the other.
"""

from __future__ import annotations

import logging
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import trio

from trio_amqp10.container.nodes.entry import Entry
from trio_amqp10.container.nodes.node import RefusedError
from trio_amqp10.container.nodes.relay import Feed
from trio_amqp10.errors import Condition, LocalProtocolError, RemoteProtocolError
from trio_amqp10.spec.messaging import ACCEPTED, Rejected
from trio_amqp10.spec.transactions import TransactionalState
from trio_amqp10.spec.transport import Error

from .watch import accept_sent, return_unsent

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from trio_amqp10.container.nodes.node import Arrival, Lease, Node
    from trio_amqp10.container.protocols.amqp10.arriving import Arriving
    from trio_amqp10.container.stores.base import StoreError
    from trio_amqp10.peer.delivery import Delivery

    from .coordinator import ControlInlet, Coordinator
    from .outlets import SenderOutlet
    from .watch import Watch

__all__ = ["Work"]

_log = logging.getLogger("trio_amqp10.container")


class _Posts(Feed):
    """The messages of one transaction for one node: an inlet that is empty until the commit."""

    __slots__ = ("committed", "node", "work")

    def __init__(self, work: Work, node: Node) -> None:
        super().__init__(work.coordinator.peer, on_gone=self._on_node_gone)
        self.work = work
        self.node = node
        self.committed = False

    def take(self) -> Arrival | None:
        arrival = super().take()
        if arrival is not None:
            self.work.unweigh(cast("Delivery", arrival))
        elif self.committed:
            self.committed = False
            self.node.remove_inlet(self)
        return arrival

    def _on_node_gone(self) -> None:
        """The node is gone: what was accepted for it can have no other outcome (4.4.4)."""
        self.work.doom(Condition.TRANSACTION_ROLLBACK, f"{self.node.address!r} is gone")


class Work:
    """One transaction.

    Attributes:
        coordinator: that declared it.
        control: the link that it was declared on.
        id: its name.
        state: what a transfer to its controller says.
        deciding: whether its commit is on the way to the disk: nothing changes it any more.
        fate: why it was rolled back here, condition and description; None while it lives.
        timer: the wait for its time-out.
    """

    __slots__ = (
        "_acquired",
        "_consumed",
        "_held",
        "_octets",
        "_outlets",
        "_posts",
        "_retired",
        "control",
        "coordinator",
        "deciding",
        "fate",
        "id",
        "state",
        "timer",
    )

    def __init__(self, coordinator: Coordinator, control: ControlInlet, txn_id: bytes) -> None:
        self.coordinator = coordinator
        self.control = control
        self.id = txn_id
        self.state = TransactionalState(txn_id=txn_id)
        self.deciding = False
        self.fate: tuple[str, str] | None = None
        self.timer = trio.CancelScope()
        self._octets = 0
        self._posts: dict[Node, _Posts] = {}
        self._held: list[tuple[_Posts, Delivery]] = []
        self._retired: dict[Watch, Any] = {}
        self._acquired: dict[Watch, None] = {}
        self._consumed: list[Lease] = []
        self._outlets: dict[SenderOutlet, None] = {}

    # -- posting (4.4.1) --------------------------------------------------------------------

    def post(self, node: Node, delivery: Delivery, refused: RefusedError | None = None) -> None:
        """Hold a message back, and tell the outcome that it will have."""
        outcome: Any = ACCEPTED
        try:
            if refused is not None:
                raise refused
            self._hold(node, delivery)
        except (RefusedError, RemoteProtocolError) as refusal:
            outcome = Rejected(error=Error(condition=refusal.condition, description=refusal.description))
            permitted = delivery.link.permits(outcome)
            if (
                delivery.settled or not permitted
            ):  # no outcome can say so, and the discharge has to fail (4.4.4)
                self.doom(refusal.condition, refusal.description)
            if not permitted:
                return
        with suppress(LocalProtocolError):  # its link is gone, and the message came all the same
            state = TransactionalState(txn_id=self.id, outcome=outcome)
            delivery.link.session.settlement.dispose(delivery, state)

    def _hold(self, node: Node, delivery: Delivery) -> None:
        node = node.destination(cast("Arriving", delivery).content)
        posts = self._posts.get(node)
        if posts is None:
            node.check_inlet(self.coordinator.peer)
            posts = self._posts[node] = _Posts(self, node)
            node.add_inlet(posts)
        self._held.append((posts, delivery))
        self._octets += len(delivery.payload)
        self.coordinator.peer.watermark.add(len(delivery.payload))
        limit = self.coordinator.max_octets
        if limit is not None and self._octets > limit:
            self.doom(
                Condition.TRANSACTION_ROLLBACK, f"its messages take more than max_unsettled_octets={limit}"
            )

    def unweigh(self, delivery: Delivery) -> None:
        """A message does not wait for the end of the transaction any more."""
        self.coordinator.peer.watermark.remove(len(delivery.payload))

    # -- retiring (4.4.2) -------------------------------------------------------------------

    def retire(self, watch: Watch, outcome: Any) -> None:
        """A delivery shall have this outcome."""
        self._retired[watch] = outcome
        watch.work = self

    def drop(self, watch: Watch) -> bool:
        """A delivery has nothing to do with the transaction any more, but where it was acquired in it: then True."""
        if watch in self._acquired:
            return True
        del self._retired[watch]
        watch.work = None
        return False

    # -- acquiring (4.4.3) ------------------------------------------------------------------

    def enlist(self, outlet: SenderOutlet) -> None:
        """What this outlet gives from now on is acquired in the transaction."""
        self._outlets[outlet] = None

    def acquire(self, watch: Watch) -> None:
        """A delivery went out, to be settled in the transaction."""
        self._acquired[watch] = None
        watch.work = self

    def consume(self, lease: Lease) -> None:
        """A message went out settled: all that is left to know is whether it went (4.4.4)."""
        self._consumed.append(lease)

    # -- the end ----------------------------------------------------------------------------

    def commit(self, then: Callable[[], object]) -> None:
        """Do it all; or nothing, and ``fate`` says why. ``then`` is called when that is decided."""
        self.timer.cancel()
        try:
            for node, messages, octets in self._amounts():
                node.check_inlet(self.coordinator.peer)
                node.check_room(messages, octets)
        except RefusedError as refusal:
            self.doom(Condition.TRANSACTION_ROLLBACK, refusal.description)
            then()
            return
        journal = self.coordinator.journal
        if journal is None:
            self._conclude()
            then()
            return
        # First all that is to be on disk, in one commit; the rest when that is done.
        self.deciding = journal.committing = True
        try:
            undos = [entry.book.strike(entry) for entry in self._taken() if entry.book is not None]
            self._hand_over([node for node in self._posts if node.storing])
        finally:
            journal.committing = False
        journal.after(partial(self._decide, undos, then))

    def _decide(
        self, undos: list[Callable[[], object]], then: Callable[[], object], failure: StoreError | None
    ) -> None:
        self.deciding = False
        if failure is None:
            self._conclude()
        else:
            for undo in undos:
                undo()
            self.doom(Condition.TRANSACTION_ROLLBACK, "the store failed")
        then()

    def _taken(self) -> Iterator[Entry]:
        """The messages that receivers take away for good."""
        for lease in self._consumed:
            if isinstance(lease, Entry):
                yield lease
        for watch, outcome in self._retired.items():
            if isinstance(watch.lease, Entry) and watch.outlet.accepts(outcome):
                yield watch.lease

    def _conclude(self) -> None:
        retired, self._retired = self._retired, {}
        acquired, self._acquired = self._acquired, {}
        consumed, self._consumed = self._consumed, []
        for lease in consumed:
            accept_sent(lease)
        for watch, outcome in retired.items():
            watch.conclude(outcome)
        for watch in acquired:
            if watch not in retired:
                watch.go_on()
        self._hand_over(list(self._posts))

    def _amounts(self) -> list[tuple[Node, int, int]]:
        """For each node that it posts to, how many messages and octets."""
        sizes: dict[Node, list[int]] = {node: [] for node in self._posts}
        for posts, delivery in self._held:
            sizes[posts.node].append(len(delivery.payload))
        return [(node, len(each), sum(each)) for node, each in sizes.items()]

    def _hand_over(self, nodes: list[Node]) -> None:
        """Give these nodes their messages."""
        held, self._held = self._held, []
        for posts, delivery in held:
            if posts.node in nodes:
                delivery.state = None  # the node gives it again, to nobody where it is settled
                posts.push(cast("Arriving", delivery))
            else:
                self._held.append((posts, delivery))
        for node in nodes:
            posts = self._posts.pop(node)
            posts.committed = True
            try:
                node.on_arrivals(posts)
            except Exception:
                _log.exception("%r failed on the messages of a transaction", node)

    def doom(self, condition: str, description: str) -> None:
        """Roll back now, and tell the controller when it asks."""
        if self.fate is None and not self.deciding:
            name = condition.value if isinstance(condition, Condition) else condition
            self.fate = name, description
            _log.debug("a transaction is rolled back, %s: %s", *self.fate)
            self._undo()

    def end(self) -> None:
        """It was discharged, or its control link is gone: what was not committed is rolled back."""
        self.timer.cancel()
        self._undo()
        for outlet in self._outlets:
            outlet.leave(self.id)
        self._outlets.clear()

    def _undo(self) -> None:
        posts, self._posts = self._posts, {}
        retired, self._retired = self._retired, {}
        acquired, self._acquired = self._acquired, {}
        consumed, self._consumed = self._consumed, []
        for _, delivery in self._held:
            self.unweigh(delivery)
            delivery.state = None
        self._held.clear()
        for node, inlet in posts.items():
            node.remove_inlet(inlet)
        for lease in reversed(consumed):
            return_unsent(lease)
        for watch in acquired:
            watch.give_back()
        for watch in retired:
            if watch not in acquired:
                watch.go_on()
