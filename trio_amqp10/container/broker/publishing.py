"""Publishing: one message to all queues that an exchange reaches, and one answer to its publisher.

================================  ================================================================
what became of it                 the answer
================================  ================================================================
every queue has it                accepted: at once, or, if one of them has it stored, once the commit is done
a queue refused it                rejected, although others may have it
the store failed                  rejected; those that store it do not have it
it reached no queue               released
================================  ================================================================

A queue that is full and makes its senders wait (``QueuePolicy.overflow``) makes a publisher wait that can: the
message stays with the publisher, nothing more is taken from the same inlet, and the message is routed anew when there is room. A publisher that
cannot wait, as it has no credit that could end, is refused. A transaction that is committed does not wait: such a queue holds more then.

All queues write in one commit, so that one callback after it is the last answer of all of them. The commit of a transaction
has asked before whether the message reaches a queue, and whether all that it reaches have room (``Transaction.commit``).

Knows arrivals and queues; does not know how bindings are found.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from trio_amqp10.container.nodes.answers import accept, answer, refuse, release
from trio_amqp10.container.nodes.origins import origin_of
from trio_amqp10.errors import Condition

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from trio_amqp10.container.nodes.content import Content
    from trio_amqp10.container.nodes.node import Arrival, Inlet, Node
    from trio_amqp10.container.nodes.queue import Queue
    from trio_amqp10.container.stores.group_commit import Journal

    from .exchanges import Exchange
    from .matchers import Headers

    Routing = Callable[[Exchange, Sequence[str], Headers], Sequence[Queue]]

__all__ = ["LazyHeaders", "Publisher"]


class LazyHeaders:
    """The headers of a message, read when an exchange first compares them, and once.

    Args:
        content: the message.
    """

    __slots__ = ("_content", "_found")

    def __init__(self, content: Content) -> None:
        self._content = content
        self._found: Mapping[str, Any] | None = None

    def __call__(self) -> Mapping[str, Any]:
        if self._found is None:
            self._found = self._content.headers
        return self._found


class Publisher:
    """Publishes through the exchanges of one broker.

    Args:
        routing: the queues that a message reaches from an exchange, each once.
        journal: what is on its way to the store; None without one.
    """

    def __init__(self, routing: Routing, journal: Journal | None) -> None:
        self._routing = routing
        self._journal = journal
        self._waiting: dict[Inlet, tuple[Queue, Arrival, Callable[[], object]]] = {}

    @property
    def stores_messages(self) -> bool:
        """Whether a message may have to wait for a store."""
        return self._journal is not None

    def must_wait(self, node: Node, inlet: Inlet) -> bool:
        """Whether nothing should be taken until there is room; ``node.on_arrivals(inlet)`` is called then."""
        if inlet in self._waiting:
            return True
        journal = self._journal
        if journal is None or journal.committing or not journal.crowded:
            return False

        def take_more() -> None:
            if inlet in node.inlets:
                node.attempt(inlet, node.on_arrivals, inlet)

        journal.when_roomy(take_more)
        return True

    def forget(self, inlet: Inlet) -> None:
        """The inlet is gone, or the exchange: what waits for room is released."""
        waiting = self._waiting.pop(inlet, None)
        if waiting is not None:
            queue, arrival, _ = waiting
            queue.forget_waiting(inlet)
            release(arrival)

    def _publish_waiting(self, inlet: Inlet) -> None:
        waiting = self._waiting.pop(inlet, None)
        if waiting is not None:
            waiting[2]()

    def route(
        self,
        exchange: Exchange,
        content: Content,
        key: str,
        further: Sequence[str] = (),
        headers: Headers | None = None,
    ) -> Sequence[Queue]:
        """The queues that a message reaches; arguments as of ``publish``."""
        return self._routing(exchange, (key, *further), LazyHeaders(content) if headers is None else headers)

    def put(self, exchange: Exchange, queue: Queue, content: Content, origin: str) -> bool:
        """Hand a message on to the one queue that it reaches, as ``publish`` does it, of a broker without a store.

        Returns:
            Whether it was taken: the queue may be full.
        """
        exchange.figures["arrived"] += 1
        return queue.gather(content, origin)

    def publish(
        self,
        inlet: Inlet,
        arrival: Arrival,
        exchange: Exchange,
        key: str,
        further: Sequence[str] = (),
        headers: Headers | None = None,
        *,
        admits: Callable[[Queue], bool] | None = None,
        node: Node | None = None,
        origin: str | None = None,
    ) -> None:
        """Hand a message on, and answer for it.

        Args:
            inlet: that it came by.
            arrival: the message; gets one answer, now or later.
            exchange: that it is published to.
            key: its routing key.
            further: more routing keys, those of the headers CC and BCC.
            headers: gives its headers; None if they are to be read from the message.
            admits: whether it may go to a queue; None if it may go to all.
            node: what takes more from the inlet when there is room again; None if it cannot wait for that.
            origin: of the messages of the inlet; None if it is to be found out.
        """
        if headers is None:
            headers = LazyHeaders(arrival.content)
        queues = self._routing(exchange, (key, *further), headers)
        if admits is not None:
            queues = [queue for queue in queues if admits(queue)]
        journal = self._journal
        committing = journal is not None and journal.committing
        full = (
            None if node is None or committing else next((each for each in queues if each.makes_wait), None)
        )
        if full is not None:

            def publish_again() -> None:
                self.publish(
                    inlet, arrival, exchange, key, further, headers, admits=admits, node=node, origin=origin
                )
                if node is not None and inlet in node.inlets:
                    node.on_arrivals(inlet)

            self._waiting[inlet] = full, arrival, publish_again
            full.when_roomy(inlet, self._publish_waiting)
            return
        self.publish_to(queues, inlet, arrival, exchange, key, origin=origin, beyond=committing)

    def publish_to(
        self,
        queues: Sequence[Queue],
        inlet: Inlet,
        arrival: Arrival,
        exchange: Exchange,
        key: str,
        *,
        origin: str | None = None,
        beyond: bool,
    ) -> None:
        """Hand a message on to queues that were found before, and answer for it.

        Args:
            queues: that it reaches from the exchange; none: it is released.
            beyond: whether queues that would make it wait hold it, as it is part of a transaction that is committed.
            inlet, arrival, exchange, key, origin: as of ``publish``.
        """
        exchange.figures["arrived"] += 1
        if not queues:
            exchange.figures["unroutable"] += 1
            release(arrival)
            return
        marked = arrival.content.published_to(exchange.name, key)
        if origin is None:
            origin = origin_of(inlet.peer)
        refusing = _gather(queues, content=marked, origin=origin, beyond=beyond)
        journal = self._journal
        if refusing is not None:
            refuse(arrival, Condition.RESOURCE_LIMIT_EXCEEDED, f"{refusing.address!r} is full")
        elif journal is not None and (journal.committing or _is_stored(queues, marked)):
            if _is_stored(queues, marked):
                arrival.record_acceptance()
            journal.after(partial(exchange.attempt, inlet, answer, inlet, arrival))
        else:
            accept(arrival)


def _gather(queues: Sequence[Queue], *, content: Content, origin: str, beyond: bool) -> Queue | None:
    """Have every queue hold the message; the first that refuses it, or None."""
    full: Queue | None = None
    for queue in queues:
        if not queue.gather(content, origin, beyond=beyond) and full is None:
            full = queue
    return full


def _is_stored(queues: Sequence[Queue], content: Content) -> bool:
    """Whether any of them has the message written."""
    return any(queue.stores(content) for queue in queues)
