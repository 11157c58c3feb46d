"""Transactions: work with the nodes of a container that is done all or not at all.

=====================  ====================================  ===============================================
the work               at the commit                         at a rollback
=====================  ====================================  ===============================================
a message is posted    it goes to its node, in order         it is dropped
a lease is answered    the answer counts                     the answer is withdrawn
=====================  ====================================  ===============================================

A successful commit has done all of it. So the commit first asks, for each message, which nodes will hold it
(``Node.holders``), and then each of these nodes whether it has room for all messages that it would get (``Node.check_room``),
directly or through exchanges. If one message would be refused, or would reach no node, the transaction is rolled back. It is
also rolled back if a node refused a message when that was posted, whatever its sender does about that (4.4.1).

With a store, the commit begins there: all new and all deleted messages are one write. The work in the table is done once
that has succeeded; until then no peer sees any of it.

A transaction is invisible to a node: messages come to it at the commit, from an inlet that exists since the first of them was
posted, so that a temporary node waits for them.

A node that takes part in commits (``Node.joins_commits``: nodes that store messages, and the queues and topics of a container
with a store) gets the messages before anything is decided, so that no other sender takes their room. If it raises, or
refuses one of them, the transaction is rolled back, and nothing was done. For a node that raises after that, see
``transaction_inlets``. A function or a consumer of the program is called after the commit. Its message counts as done when it
is handed over, because the result of the handler cannot be known before.

Knows nodes, arrivals and leases; knows no dialect: the protocol decides how a peer declares and ends a transaction, and what
its outcomes mean.
"""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING, Final, Protocol

from trio_amqp10.broker.stores.base import error_for_peers
from trio_amqp10.core.errors import Condition

from .nodes.node import RefusedError
from .transaction_inlets import TransactionInlet, attempt

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from trio_amqp10.core.errors import RemoteProtocolError

    from .nodes.clock import Clock
    from .nodes.node import Arrival, Lease, Node, Peer
    from .nodes.watermark import Watermark
    from .rights.guard import Guard
    from .stores.base import StoreError
    from .stores.group_commit import Journal

_log = logging.getLogger("trio_amqp10.container")


class PendingAnswer(Protocol):
    """The answer to one lease, which waits for the end of a transaction."""

    @property
    def lease(self) -> Lease | None:
        """The lease; None if the node needs no answer."""
        ...

    @property
    def removes(self) -> bool:
        """Whether the message is gone at the commit, which then deletes it from the store."""
        ...

    def commit(self) -> None:
        """Answer the lease: the transaction has succeeded."""
        ...

    def rollback(self) -> None:
        """Withdraw the answer: the transaction is rolled back."""
        ...


class _Permission:
    """The permission to send to one address, which a message of a transaction needs."""

    def __init__(self, refuse: Callable[[RefusedError], object]) -> None:
        self._refuse = refuse

    def close(self, condition: str, description: str) -> None:
        """Roll back: the peer has lost the permission."""
        self._refuse(RefusedError(condition, description))


class LeaseAnswer:
    """The answer to a lease, without further consequences.

    Args:
        lease: the lease.
        answer: calls one of its methods.
        removes: whether that is ``accepted``.
        undo: called in place of ``answer`` at a rollback.
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
    """Work that is done all together, or not at all.

    Args:
        peer: the peer that declared it.
        clock: schedules the next call of a node that raised.
        watermark: counts the octets of the messages that wait here.
        journal: writes the commit; None for a container without a store.
        max_octets: octets of messages that may wait here; None for any number.
        on_rollback: called first when it is rolled back.
        permissions: asked again for each address that a message was sent to; None if the peer needs no permission.

    Attributes:
        committing: whether its commit is being written: nothing changes it any more.
        failure: the condition and description if it was rolled back here; otherwise None.
        cause: the condition of the message or operation that was refused; None if there is no failure, or if the store or a
            node failed.
        over: whether it has succeeded, or is rolled back.
        octets: of the messages that were posted.
    """

    __slots__ = (
        "__weakref__",
        "_answers",
        "_clock",
        "_journal",
        "_max_octets",
        "_on_rollback",
        "_permissions",
        "_permitted",
        "_posts",
        "_watermark",
        "cause",
        "committing",
        "failure",
        "octets",
        "over",
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
        permissions: Guard | None = None,
    ) -> None:
        self.peer: Peer = peer
        self._clock = clock
        self._watermark = watermark
        self.committing: bool = False
        self.over: bool = False
        self.failure: tuple[str, str] | None = None
        self.cause: str | None = None
        self._journal = journal
        self._max_octets = max_octets
        self._on_rollback = on_rollback
        self.octets: int = 0
        self._permissions = permissions
        self._permitted: dict[str, _Permission] = {}
        self._posts: dict[Node, TransactionInlet] = {}
        self._answers: dict[PendingAnswer, None] = {}

    @property
    def messages(self) -> int:
        """The number of messages that wait for the commit."""
        return sum(map(len, self._posts.values()))

    @property
    def answers(self) -> int:
        """The number of leases whose answers wait for the commit."""
        return len(self._answers)

    # -- the work ---------------------------------------------------------------------------

    def post(self, node: Node, arrival: Arrival, size: int, addresses: Sequence[str] = ()) -> None:
        """Hold a message for this node, or for the node that this one forwards it to.

        Args:
            node: the node that it was sent to.
            arrival: the message; its ``state`` must be None from the commit on, until the node answers.
            size: its octets.
            addresses: the addresses that the peer was permitted to send to; by default that of the node.

        Raises:
            RefusedError: the node does not take it. The transaction is rolled back.
        """
        try:
            node = node.destination(arrival.content)
            posts = self._posts.get(node)
            if posts is None:
                node.check_inlet(self.peer)
                posts = TransactionInlet(self.peer, node, self._clock, self._watermark, self.fail)
        except RefusedError as refusal:
            self.refuse(refusal)
            raise
        if node not in self._posts:
            node.add_inlet(posts)
            self._posts[node] = posts
        posts.hold(arrival, size)
        for address in addresses or (node.address,):
            self._depend_on(address)
        self.octets += size
        limit = self._max_octets
        if limit is not None and self.octets > limit:
            self.fail(
                Condition.TRANSACTION_ROLLBACK,
                f"the messages of the transaction take more than max_unsettled_octets={limit}",
            )

    def _depend_on(self, address: str) -> None:
        """Roll back if the peer loses the permission for this address before the commit."""
        permissions = self._permissions
        if permissions is not None and address not in self._permitted:
            permission = self._permitted[address] = _Permission(self.refuse)
            permissions.remember(permission, ("send", address))

    def _forget_permissions(self) -> None:
        permitted, self._permitted = self._permitted, {}
        if self._permissions is not None:
            for permission in permitted.values():
                self._permissions.forget(permission)

    def add(self, answer: PendingAnswer) -> None:
        """Add an answer, which may still change until the commit; at most once."""
        self._answers[answer] = None

    def drop(self, answer: PendingAnswer) -> None:
        """Remove an answer."""
        del self._answers[answer]

    def refuse(self, refusal: RefusedError | RemoteProtocolError) -> None:
        """Roll back because a message was refused: the commit could not do all (4.4.1)."""
        self._fail(refusal.condition, f"a message was refused, {refusal}")

    # -- the end ----------------------------------------------------------------------------

    def commit(self, then: Callable[[], object]) -> None:
        """Do all of the work, or none.

        ``then`` is called when that is decided: ``failure`` is None, or the reason why nothing was done.
        """
        if self.failure is not None:
            self.rollback()  # It was rolled back before; this drops the work that was added since.
            then()
            return
        try:
            self._check()
        except RefusedError as refusal:
            self._fail(refusal.condition, refusal.description)
        except Exception:
            _log.exception("a transaction could not be committed")
            self._break("a node failed")
        else:
            if self._journal is not None:
                self._store(self._journal, then)
                return
            self._apply()
        then()

    def _check(self) -> None:
        """Raise ``RefusedError`` if a message would be refused, or would reach no node.

        Between this and the moment when nodes get their messages nothing is awaited, so the answers stay true.
        """
        wanted: dict[Node, tuple[int, int]] = {}
        for node, posts in list(self._posts.items()):
            node.check_inlet(self.peer)
            for arrival, size in posts.arrivals:
                for holder in node.holders(posts, arrival):
                    messages, octets = wanted.get(holder, (0, 0))
                    wanted[holder] = messages + 1, octets + size
        for holder, (messages, octets) in wanted.items():
            holder.check_room(messages, octets)

    def _store(self, journal: Journal, then: Callable[[], object]) -> None:
        """Write all changes in one commit; do the rest when that is done."""
        undos: list[Callable[[], object]] = []
        self.committing = True
        try:
            with journal.transaction():
                # A message that was taken away is deleted in the same commit that has the new ones.
                for answer in self._answers:
                    if answer.removes and answer.lease is not None:
                        undo = answer.lease.delete_in_commit()
                        if undo is not None:
                            undos.append(undo)
                # These nodes note their messages in the journal now. The others get theirs in ``_apply``.
                for node, posts in list(self._posts.items()):
                    if node.joins_commits:
                        _hand_over(node, posts)
        except RefusedError as refusal:
            self._undo(undos)
            self._fail(refusal.condition, refusal.description)
            then()
            return
        except Exception:
            _log.exception("a transaction could not be committed")
            self._undo(undos)
            self._break("a node failed")
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
            self._undo(undos)
            self._break(error_for_peers(failure)[1])
        then()

    def _undo(self, undos: list[Callable[[], object]]) -> None:
        self.committing = False
        for undo in undos:
            undo()

    def _break(self, why: str) -> None:
        """Roll back because of an internal fault."""
        self._fail(None, why)

    def _apply(self) -> None:
        self.over = True
        self._forget_permissions()
        answers, self._answers = self._answers, {}
        posts, self._posts = self._posts, {}
        for answer in answers:
            attempt(answer.commit)
        for each in posts.values():
            attempt(each.commit)

    def fail(self, condition: str, description: str) -> None:
        """Roll back now; the commit will report the reason.

        Does nothing while the commit is being written, or after it.
        """
        name = condition.value if isinstance(condition, Condition) else condition
        self._fail(name, description, name)

    def _fail(
        self, cause: str | None, description: str, condition: str = Condition.TRANSACTION_ROLLBACK.value
    ) -> None:
        if self.failure is None and not self.committing:
            self.cause = cause
            self.failure = condition, description
            _log.debug("a transaction is rolled back, %s: %s", *self.failure)
            self.rollback()

    def rollback(self) -> None:
        """Drop all of the work; does nothing after the commit."""
        self.over = True
        self._forget_permissions()
        if self._on_rollback is not None:
            self._on_rollback()
        answers, self._answers = self._answers, {}
        posts, self._posts = self._posts, {}
        for each in posts.values():
            each.rollback()
        for answer in answers:
            attempt(answer.rollback)


def _hand_over(node: Node, posts: TransactionInlet) -> None:
    """Give a node its messages before the transaction is decided.

    Raises:
        RefusedError: the node has refused one of them.
    """
    arrivals = posts.arrivals
    posts.open()
    node.on_arrivals(posts)
    for arrival, _ in arrivals:
        if getattr(arrival, "refused", False):  # Not all protocols' arrivals have this attribute.
            raise RefusedError(Condition.TRANSACTION_ROLLBACK, f"{node.address!r} has refused a message")
