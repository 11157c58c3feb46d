"""Dead letters: the messages that a queue sends to its dead-letter address.

The dead letter goes to another node; its content records the reason in its own form (``Content.dead``). It has no ttl, and
does not expire. The message stays in its queue, unavailable to consumers, until the other node accepts the letter. So a
letter waits while that node is full. If the other node stores its messages, one commit writes the letter and deletes the message.
If its store is full or fails, the message stays on disk in its own queue, and dies again after a restart. If no node takes the
letter, because the address does not exist or the node rejects it, the letter is lost, and the log records that.

The queue finds that node and makes the content (``Queue.find_dead_letters``, ``Queue.to_dead_letter``). The dead letters of
a broker's queue go to an exchange, which routes them by ``DeadLetter.publication``.

Knows messages and nodes; knows no links.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Final

from trio_amqp10.core.errors import AmqpError, Condition, LocalProtocolError

from .node import RefusedError
from .relay import Feed

if TYPE_CHECKING:
    from collections.abc import Callable

    from .content import Content, Death, Publication
    from .node import Node
    from .queue import Queue

_log = logging.getLogger("trio_amqp10.container")


class DeadLetters:
    """The path of dead letters from one queue to its dead-letter address.

    Args:
        source: the queue; its container is the sender.
        address: the dead-letter address.
    """

    __slots__ = ("_feed", "_node", "_open", "_source", "address")

    def __init__(self, source: Queue, address: str) -> None:
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
        """Send a dead message to the dead-letter address.

        Args:
            content: the message that died.
            reason: why it died.
            condition, description: the error that its receiver gave.
            done: called once. True: the other node has the letter, or it is lost. False: it could not be stored there, so the
                queue must keep the message in the store.
            delete_in_commit: deletes the message from the store in the commit that writes the letter, so that a crash leaves
                exactly one of the two. It returns a function that cancels the deletion. None for a message that is not stored.
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

    @property
    def wait_for_room(self) -> bool:
        """Whether a letter waits for room at the address, and not for an answer."""
        node, feed = self._node, self._feed
        return node is not None and feed is not None and node.lacks_room_for(feed)

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
        """Count one letter as answered; after the last, disconnect from the other node."""
        self._open -= 1
        if not self._open:
            self.close()

    def close(self) -> None:
        """Disconnect from the other node; letters that it has not taken are lost."""
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
        """Delete the message from the store in the same commit; see ``Arrival``."""
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
        """Record that no node takes the letter: it is lost."""
        self._answer("lost")
        _log.warning("%r: a dead letter is lost: %s", self._letters, why)

    def keep(self) -> bool:
        """Keep the message in the store of its queue; see ``Arrival.keep``."""
        if self._undo is not None:
            self._undo()
        self._answer("kept", gone=False)
        _log.warning(
            "%r: a dead letter could not be stored, so the message stays in its queue", self._letters
        )
        return True

    def _answer(self, state: str, *, gone: bool = True) -> None:
        if self.state is not None:
            raise LocalProtocolError(f"this message is {self.state} already")
        self.state = state
        self.settled = True
        self._letters.end()
        self._done(gone)
