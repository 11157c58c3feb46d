"""Dead letters: what becomes of messages that a queue can do no more for.

The message goes to another node; its content says in the way of its form why (``Content.dead``). It loses its ttl, and
expires no more. It stays in its queue, where no consumer gets it any more, until the
other node has accepted it: so a letter waits where that node is full, and one that should be stored there and
cannot be stays on the disk where it was, to die again after a restart. Where it is stored, one commit has the
letter come and the message go. One that no node takes, because
there is no such node or the node rejects it, is gone, and the log says so.

The queue says which node that is, and what the content becomes (``Source``): those of a broker lead to exchanges, which
ask the letter for its routing keys.

Knows messages and nodes; knows no links.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Final, Protocol

from trio_amqp10.errors import AmqpError, Condition, LocalProtocolError

from .node import RefusedError
from .relay import Feed

if TYPE_CHECKING:
    from collections.abc import Callable

    from .content import Content, Death, Publication
    from .node import ContainerPeer, Node

__all__ = ["DeadLetter", "DeadLetters", "Source"]

_log = logging.getLogger("trio_amqp10.container")


class Source(Protocol):
    """The queue, as far as its dead letters need it."""

    address: str
    container: ContainerPeer | None

    def find_dead_letters(self, address: str) -> Node:
        """The node that dead letters go to. Raises ``RefusedError``."""
        ...

    def publication_of(self, content: Content) -> Publication | None:
        """Where a message was published to; None if that is not known."""
        ...

    def to_dead_letter(
        self, content: Content, reason: Death, condition: str | None, description: str | None
    ) -> Content:
        """What a message becomes that died here."""
        ...


class DeadLetters:
    """The way of one queue to its dead-letter address.

    Args:
        source: the queue; its container is seen as the sender.
        address: where its messages go.
    """

    __slots__ = ("_feed", "_node", "_open", "_source", "address")

    def __init__(self, source: Source, address: str) -> None:
        self.address: str = address
        self._source = source
        self._node: Node | None = None
        self._feed: Feed | None = None
        self._open = 0

    def send(
        self,
        content: Content,
        reason: Death,
        condition: str | None,
        description: str | None,
        done: Callable[[bool], object],
        delete_in_commit: Callable[[], Callable[[], object]] | None,
    ) -> None:
        """Hand a dead message over; ``done`` is called once: with True when it is in other hands, or gone.

        With False where it could not be stored there: whoever has it on disk keeps it, for another day. ``delete_in_commit`` deletes
        it there in the commit that has it here, so that a crash leaves one of the two; what it returns undoes that.
        """
        dead = self._source.to_dead_letter(content, reason, condition, description)
        letter = DeadLetter(self, dead, reason, self._source.publication_of(content), done, delete_in_commit)
        self._open += 1
        try:
            node, feed = self._reach()
        except RefusedError as refusal:
            letter.fail(refusal)
            return
        feed.push(letter)
        node.on_arrivals(feed)

    def _reach(self) -> tuple[Node, Feed]:
        if self._node is not None and self._feed is not None:
            return self._node, self._feed
        container = self._source.container
        if container is None:
            raise RefusedError(Condition.NOT_FOUND, "the queue is in no container")
        node = self._source.find_dead_letters(self.address)
        node.check_inlet(container)
        feed = Feed(container, on_gone=self._on_gone)
        self._node, self._feed = node, feed
        node.add_inlet(feed)
        return node, feed

    def _on_gone(self) -> None:
        self._node = self._feed = None

    def end(self) -> None:
        """One less is under way; with the last, the node is left alone."""
        self._open -= 1
        if not self._open:
            self.close()

    def close(self) -> None:
        """Leave the node; what it has not taken is gone."""
        node, feed = self._node, self._feed
        self._node = self._feed = None
        if node is not None and feed is not None:
            node.remove_inlet(feed)
            feed.close()

    def __repr__(self) -> str:
        return f"<DeadLetters {self._source.address!r} to {self.address!r}>"


class DeadLetter:
    """A dead message, as an arrival at the other node.

    Attributes:
        reason: why it died.
        publication: where it was published to before; None if that is not known.
    """

    __slots__ = (
        "_delete_in_commit",
        "_done",
        "_letters",
        "_undo",
        "content",
        "publication",
        "reason",
        "settled",
        "state",
    )

    tag = b""

    def __init__(
        self,
        letters: DeadLetters,
        content: Content,
        reason: Death,
        publication: Publication | None,
        done: Callable[[bool], object],
        delete_in_commit: Callable[[], Callable[[], object]] | None,
    ) -> None:
        self.content: Final = content
        self.reason: Death = reason
        self.publication: Final = publication
        self.settled: bool = False
        self.state: Any = None
        self._letters = letters
        self._done = done
        self._delete_in_commit = delete_in_commit
        self._undo: Callable[[], object] | None = None

    @property
    def message(self) -> Any:
        return self.content.as_message()

    def record_acceptance(self) -> None:
        """As ``Arrival.record_acceptance``: where it comes from it is deleted in the same commit."""
        if self._delete_in_commit is not None:
            self._undo = self._delete_in_commit()

    def accept(self) -> None:
        self._answer("accepted")

    def reject(self, condition: str = Condition.INTERNAL_ERROR, description: str | None = None) -> None:
        self.fail(RefusedError(condition, description or "rejected"))

    def release(self) -> None:
        self.fail(RefusedError(Condition.PRECONDITION_FAILED, "released: it was not processed"))

    def modify(self, **changes: Any) -> None:  # noqa: ARG002
        self.release()

    def fail(self, why: AmqpError) -> None:
        """Nobody takes it."""
        self._answer("lost")
        _log.warning("%r: a dead letter is lost: %s", self._letters, why)

    def keep(self) -> bool:
        """As ``Arrival.keep``: it is not to be deleted where it comes from."""
        if self._undo is not None:
            self._undo()
        self._answer("kept", gone=False)
        _log.warning("%r: a dead letter could not be stored, and stays where it was", self._letters)
        return True

    def _answer(self, state: str, *, gone: bool = True) -> None:
        if self.state is not None:
            raise LocalProtocolError(f"this message is {self.state} already")
        self.state = state
        self.settled = True
        self._letters.end()
        self._done(gone)
