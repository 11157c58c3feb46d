"""What is done together, or not at all, with the nodes of a container.

=====================  ====================================  ===============================================
the work               at the commit                         at a rollback
=====================  ====================================  ===============================================
a message is posted    it goes to its node, in order         it is dropped
a lease is answered    the answer counts                     the answer is as never given
=====================  ====================================  ===============================================

A commit that succeeds has done all of it. So it first asks, for each message, which nodes will hold it (``Node.holders``), and
then each of these nodes whether it has room for all that it would get (``Node.check_room``), by whatever way that comes: to itself, or through
exchanges. If one message would be refused, or would reach no node, the transaction is rolled back. It is rolled back as well if a node
refused a message when it was posted, whatever its sender does about that (4.4.1).

With a store, the commit begins there: all messages that come and all that go are one write, and what
the table says is done once that has succeeded. Until then none of it is seen.

To a node a transaction is invisible: messages come to it at the commit, from an inlet that was
there since the first of them was posted, so that a temporary node waits for them.

A node that takes part in commits (``Node.joins_commits``: those that store messages, and the queues and topics of a container with a
store) is given the messages before anything is decided: what it holds counts as its own, and nobody else gets that room. If it raises
or refuses one, the transaction is rolled back, and
nothing was done. What becomes of a node that raises after that is described in ``transaction_inlets``. A function or a consumer of the program is
called after the commit. Its message is done when it is handed over: what the handler makes of it cannot be known before.

Knows nodes, arrivals and leases; knows no dialect: how a peer declares and ends a transaction, and what its outcomes
mean, is the business of the protocol that it speaks.
"""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Protocol

from trio_amqp10.errors import Condition

from .nodes.node import RefusedError
from .transaction_inlets import TransactionInlet, attempt

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from trio_amqp10.errors import RemoteProtocolError

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


class Permissions(Protocol):
    """Asks again for what was permitted, when there is a reason to: see ``rights.guard.Guard``."""

    def remember(self, link: Any, wish: Any) -> None:
        """Close ``link``, with a condition and a description, if this is not permitted any more."""
        ...

    def forget(self, link: Any) -> None:
        """Do not ask for it again."""
        ...


class _Permission:
    """The permission to send to one address, which messages of a transaction went by."""

    def __init__(self, refuse: Callable[[RefusedError], object]) -> None:
        self._refuse = refuse

    def close(self, condition: str, description: str) -> None:
        """It is withdrawn: the transaction would do what its peer may not do any more."""
        self._refuse(RefusedError(condition, description))


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
        permissions: asked again for each address that it has a message for; None if the peer needs none.

    Attributes:
        committing: whether its commit is on the way to the disk: nothing changes it any more.
        failure: why it was rolled back here, condition and description; None while it lives.
        cause: the condition with which something in it was refused; None while it lives, and if the store or a node failed.
    """

    __slots__ = (
        "_answers",
        "_clock",
        "_journal",
        "_max_octets",
        "_octets",
        "_on_rollback",
        "_permissions",
        "_permitted",
        "_posts",
        "_watermark",
        "cause",
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
        permissions: Permissions | None = None,
    ) -> None:
        self.peer: Peer = peer
        self._clock = clock
        self._watermark = watermark
        self.committing: bool = False
        self.failure: tuple[str, str] | None = None
        self.cause: str | None = None
        self._journal = journal
        self._max_octets = max_octets
        self._on_rollback = on_rollback
        self._octets = 0
        self._permissions = permissions
        self._permitted: dict[str, _Permission] = {}
        self._posts: dict[Node, TransactionInlet] = {}
        self._answers: dict[PendingAnswer, None] = {}

    # -- the work ---------------------------------------------------------------------------

    def post(self, node: Node, arrival: Arrival, size: int, addresses: Sequence[str] = ()) -> None:
        """Hold a message back for this node, or for the one that this hands it on to.

        Args:
            node: where it was sent.
            arrival: the message; its ``state`` has to be None from the commit on, until the node answers.
            size: its octets.
            addresses: that the peer was permitted to send to; that of the node if there are none.

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
        self._octets += size
        limit = self._max_octets
        if limit is not None and self._octets > limit:
            self.fail(
                Condition.TRANSACTION_ROLLBACK, f"its messages take more than max_unsettled_octets={limit}"
            )

    def _depend_on(self, address: str) -> None:
        """Roll back if the peer loses the permission to send there before the commit."""
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
        """Have this decided with all else; it may still change until the commit. Added again, it stays once."""
        self._answers[answer] = None

    def drop(self, answer: PendingAnswer) -> None:
        """This is not part of the transaction any more."""
        del self._answers[answer]

    def refuse(self, refusal: RefusedError | RemoteProtocolError) -> None:
        """A message of the transaction was refused: roll back now, as the commit could not do everything (4.4.1)."""
        self._fail(refusal.condition, f"a message was refused, {refusal}")

    # -- the end ----------------------------------------------------------------------------

    def commit(self, then: Callable[[], object]) -> None:
        """Do it all, or nothing. ``then`` is called when that is decided: ``failure`` is None, or says why nothing was done."""
        if self.failure is not None:
            self.rollback()  # what was added since
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

        Nothing is awaited between this and the moment when nodes get their messages.
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
            self._break("the store failed")
        then()

    def _undo(self, undos: list[Callable[[], object]]) -> None:
        self.committing = False
        for undo in undos:
            undo()

    def _break(self, why: str) -> None:
        """Roll back because of a fault on our side."""
        self._fail(None, why)

    def _apply(self) -> None:
        self._forget_permissions()
        answers, self._answers = self._answers, {}
        posts, self._posts = self._posts, {}
        for answer in answers:
            attempt(answer.commit)
        for each in posts.values():
            attempt(each.commit)

    def fail(self, condition: str, description: str) -> None:
        """Roll back now, and say why when the commit is asked for. Nothing happens where that is on its way, or done."""
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
        """Do nothing of it. After the commit there is nothing left to roll back."""
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
        if getattr(arrival, "refused", False):  # arrivals of other protocols may not tell
            raise RefusedError(Condition.TRANSACTION_ROLLBACK, f"{node.address!r} has refused a message")
