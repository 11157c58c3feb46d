"""What is done together, or not at all, with the nodes of a container.

=====================  ====================================  ===============================================
the work               at the commit                         at a rollback
=====================  ====================================  ===============================================
a message is posted    it goes to its node, in order         it is dropped
a lease is answered    the answer counts                     the answer is as never given
=====================  ====================================  ===============================================

With a store, the commit begins there: all messages that come and all that go are one write, and what
the table says is done once that has succeeded. Until then none of it is seen.

To a node a transaction is invisible: messages come to it at the commit, from an inlet that was
there since the first of them was posted, so that a temporary node waits for them.

A node that stores messages is given them before anything is decided. If it raises, the transaction is rolled back, and
nothing was done. What becomes of a node that raises after that is described in ``transaction_inlets``.

Knows nodes, arrivals and leases; knows no dialect: how a peer declares and ends a transaction, and what its outcomes
mean, is the business of the protocol that it speaks.
"""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING, Final, Protocol

from trio_amqp10.errors import Condition

from .nodes.node import RefusedError
from .transaction_inlets import TransactionInlet, attempt

if TYPE_CHECKING:
    from collections.abc import Callable

    from .nodes.clock import Clock
    from .nodes.node import Arrival, Lease, Node, Peer
    from .nodes.watermark import Watermark
    from .stores.base import StoreError
    from .stores.group_commit import Journal

__all__ = ["LeaseAnswer", "PendingAnswer", "Transaction"]

_log = logging.getLogger("trio_amqp10.container")


class PendingAnswer(Protocol):
    """The answer to one lease, which waits for the end of a transaction."""

    @property
    def lease(self) -> Lease | None:
        """The lease; None if the node does not want to know."""
        ...

    @property
    def removes(self) -> bool:
        """Whether the message is gone for good: the store deletes it in the commit of the transaction."""
        ...

    def commit(self) -> None:
        """The transaction has succeeded: answer the lease."""
        ...

    def rollback(self) -> None:
        """The transaction is rolled back: it is as if the lease had not been answered."""
        ...


class LeaseAnswer:
    """The answer to a lease, where no more depends on it.

    Args:
        lease: the lease.
        answer: calls one of its methods.
        removes: whether that is ``accepted``.
        undo: is called in place of ``answer`` at a rollback.
    """

    __slots__ = ("_answer", "_undo", "lease", "removes")

    def __init__(
        self, lease: Lease, answer: Callable[[], object], *, removes: bool, undo: Callable[[], object]
    ) -> None:
        self.lease: Final = lease
        self.removes: Final = removes
        self._answer = answer
        self._undo = undo

    def commit(self) -> None:
        self._answer()

    def rollback(self) -> None:
        self._undo()


class Transaction:
    """What is done together, or not at all.

    Args:
        peer: on whose behalf.
        clock: by which a node that raised is called again.
        watermark: counts the octets of the messages that wait here.
        journal: what the commit goes through; None for a container without a store.
        max_octets: octets of messages that it may hold back; None for any number.
        on_rollback: called first when it is rolled back.

    Attributes:
        committing: whether its commit is on the way to the disk: nothing changes it any more.
        failure: why it was rolled back here, condition and description; None while it lives.
    """

    __slots__ = (
        "_answers",
        "_clock",
        "_journal",
        "_max_octets",
        "_octets",
        "_on_rollback",
        "_posts",
        "_watermark",
        "committing",
        "failure",
        "peer",
    )

    def __init__(
        self,
        peer: Peer,
        clock: Clock,
        watermark: Watermark,
        *,
        journal: Journal | None = None,
        max_octets: int | None = None,
        on_rollback: Callable[[], object] | None = None,
    ) -> None:
        self.peer: Peer = peer
        self._clock = clock
        self._watermark = watermark
        self.committing: bool = False
        self.failure: tuple[str, str] | None = None
        self._journal = journal
        self._max_octets = max_octets
        self._on_rollback = on_rollback
        self._octets = 0
        self._posts: dict[Node, TransactionInlet] = {}
        self._answers: dict[PendingAnswer, None] = {}

    # -- the work ---------------------------------------------------------------------------

    def post(self, node: Node, arrival: Arrival, size: int) -> None:
        """Hold a message back for this node, or for the one that this hands it on to.

        Args:
            node: where it was sent.
            arrival: the message; its ``state`` has to be None from the commit on, until the node answers.
            size: its octets.

        Raises:
            RefusedError: the node does not take it. The transaction goes on without it.
        """
        node = node.destination(arrival.content)
        posts = self._posts.get(node)
        if posts is None:
            node.check_inlet(self.peer)
            posts = TransactionInlet(self.peer, node, self._clock, self._watermark, self.fail)
            node.add_inlet(posts)
            self._posts[node] = posts
        posts.hold(arrival, size)
        self._octets += size
        limit = self._max_octets
        if limit is not None and self._octets > limit:
            self.fail(
                Condition.TRANSACTION_ROLLBACK, f"its messages take more than max_unsettled_octets={limit}"
            )

    def add(self, answer: PendingAnswer) -> None:
        """Have this decided with all else; it may still change until the commit. Added again, it stays once."""
        self._answers[answer] = None

    def drop(self, answer: PendingAnswer) -> None:
        """This is not part of the transaction any more."""
        del self._answers[answer]

    # -- the end ----------------------------------------------------------------------------

    def commit(self, then: Callable[[], object]) -> None:
        """Do it all, or nothing. ``then`` is called when that is decided: ``failure`` is None, or says why nothing was done."""
        try:
            for node, posts in list(self._posts.items()):
                node.check_inlet(self.peer)
                node.check_room(len(posts), posts.octets)
        except RefusedError as refusal:
            self.fail(Condition.TRANSACTION_ROLLBACK, refusal.description)
        except Exception:
            _log.exception("a transaction could not be committed")
            self.fail(Condition.TRANSACTION_ROLLBACK, "a node failed")
        else:
            if self._journal is not None:
                self._store(self._journal, then)
                return
            self._apply()
        then()

    def _store(self, journal: Journal, then: Callable[[], object]) -> None:
        """First all that is to be on disk, in one commit; the rest when that is done."""
        undos: list[Callable[[], object]] = []
        self.committing = True
        try:
            with journal.transaction():
                for answer in self._answers:
                    if answer.removes and answer.lease is not None:
                        undo = answer.lease.delete_in_commit()
                        if undo is not None:
                            undos.append(undo)
                for node, posts in list(self._posts.items()):
                    if node.stores_messages:
                        posts.open()
                        node.on_arrivals(posts)
        except Exception:
            _log.exception("a transaction could not be committed")
            self._undo_and_fail(undos, "a node failed")
            then()
            return
        journal.after(partial(self._decide, undos, then))

    def _decide(
        self, undos: list[Callable[[], object]], then: Callable[[], object], failure: StoreError | None
    ) -> None:
        if failure is None:
            self.committing = False
            self._apply()
        else:
            self._undo_and_fail(undos, "the store failed")
        then()

    def _undo_and_fail(self, undos: list[Callable[[], object]], why: str) -> None:
        self.committing = False
        for undo in undos:
            undo()
        self.fail(Condition.TRANSACTION_ROLLBACK, why)

    def _apply(self) -> None:
        answers, self._answers = self._answers, {}
        posts, self._posts = self._posts, {}
        for answer in answers:
            attempt(answer.commit)
        for each in posts.values():
            attempt(each.commit)

    def fail(self, condition: str, description: str) -> None:
        """Roll back now, and say why when the commit is asked for. Nothing happens where that is on its way, or done."""
        if self.failure is None and not self.committing:
            name = condition.value if isinstance(condition, Condition) else condition
            self.failure = name, description
            _log.debug("a transaction is rolled back, %s: %s", *self.failure)
            self.rollback()

    def rollback(self) -> None:
        """Do nothing of it. After the commit there is nothing left to roll back."""
        if self._on_rollback is not None:
            self._on_rollback()
        answers, self._answers = self._answers, {}
        posts, self._posts = self._posts, {}
        for each in posts.values():
            each.rollback()
        for answer in answers:
            attempt(answer.rollback)
