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

What reaches many queues is done in pieces, so that others have their turn: the publisher waits, and nothing more is taken from
the same inlet. Where a store is, the pieces share a commit all the same.

Knows arrivals and queues; does not know how bindings are found.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from trio_amqp10.container.nodes.arrival_answers import accept, answer, refuse, release
from trio_amqp10.container.nodes.message_origin import origin_of
from trio_amqp10.container.nodes.turns import ENDLESS, finish, guarded, take_steps
from trio_amqp10.errors import Condition

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping, Sequence

    from trio_amqp10.container.nodes.clock import Clock
    from trio_amqp10.container.nodes.content import Content
    from trio_amqp10.container.nodes.node import Arrival, Inlet, Node
    from trio_amqp10.container.nodes.queue import Queue
    from trio_amqp10.container.nodes.turns import Resumer, Steps, Turns
    from trio_amqp10.container.stores.group_commit import Journal

    from .exchanges import Exchange
    from .matchers import Headers

    Search = Callable[[Exchange, Sequence[str], Headers], Generator[None, None, Sequence[Queue]]]

__all__ = ["LazyHeaders", "Publisher"]


def _nothing() -> None:
    """Nobody waits for it."""


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
        search: finds the queues that a message reaches from an exchange, each once: ``Router.search``.
        journal: what is on its way to the store; None without one.
        clock: gives the turns that long work takes.
    """

    def __init__(self, search: Search, journal: Journal | None, clock: Clock) -> None:
        self._search = search
        self._journal = journal
        self._clock = clock
        self._waiting: dict[Inlet, tuple[Queue, Arrival, Callable[[], object]]] = {}
        self._next: Inlet | None = None  # whose turn it is: one message of it is taken, whatever time it is
        self._under_way: set[Inlet] = set()
        """Inlets of which a message is on its way to many queues, or from which more is taken in a later turn."""

    @property
    def stores_messages(self) -> bool:
        """Whether a message may have to wait for a store."""
        return self._journal is not None

    def must_wait(self, node: Node, inlet: Inlet) -> bool:
        """Whether nothing should be taken until there is room; ``node.on_arrivals(inlet)`` is called then."""
        if inlet in self._waiting or inlet in self._under_way:
            return True
        journal = self._journal
        if journal is not None and journal.committing:
            return False
        if journal is not None and journal.crowded:
            journal.when_roomy(partial(_take_more, node, inlet))
            return True
        turns = self._clock.turns()
        if turns.is_over() and inlet is not self._next:
            self._under_way.add(inlet)
            turns.later(partial(self._on_turn, node, inlet))
            return True
        return False

    def _on_turn(self, node: Node, inlet: Inlet) -> None:
        self._under_way.discard(inlet)
        self._next = inlet
        _take_more(node, inlet)
        self._next = None

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
        return finish(
            self._search(exchange, (key, *further), LazyHeaders(content) if headers is None else headers)
        )

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
        then: Callable[[], object] = _nothing,
    ) -> bool:
        """Hand a message on, and answer for it: now, or, where it reaches many queues, in pieces.

        Args:
            inlet: that it came by.
            arrival: the message; gets one answer, now or later.
            exchange: that it is published to.
            key: its routing key.
            further: more routing keys, those of the headers CC and BCC.
            headers: gives its headers; None if they are to be read from the message.
            admits: whether it may go to a queue; None if it may go to all.
            node: what takes more from the inlet when there is room again, or this is done; None if it cannot wait for room.
            origin: of the messages of the inlet; None if it is to be found out.
            then: is called when it was handed on, unless it was at once.

        Returns:
            Whether it was handed on, or waits for room. If not, hand on nothing more from this inlet before ``then`` is called.
        """
        content = arrival.content
        if inlet is self._next:
            self._next = None
        if headers is None:
            headers = LazyHeaders(content)
        if origin is None:
            origin = origin_of(inlet.peer)
        publication = _Publication(
            inlet, arrival, exchange, (key, *further), headers, admits, node, origin, then
        )
        return self._take_steps(publication)

    def _take_steps(self, publication: _Publication) -> bool:
        turns = self._clock.turns()
        if self._journal is not None and self._journal.committing:
            turns = ENDLESS  # a transaction that is committed has no time to wait
        inlet, node, at_once = publication.inlet, publication.node, True

        def done() -> None:
            if not at_once:
                self._under_way.discard(inlet)
                publication.then()
                if node is not None:
                    _take_more(node, inlet)

        def fail(failure: Exception) -> None:
            if at_once:
                raise failure
            publication.exchange.end_link(inlet)

        finished = take_steps(turns, guarded(self._steps(publication, turns), fail), done)
        at_once = False
        if not finished:
            self._under_way.add(inlet)
        return finished

    def _steps(self, publication: _Publication, turns: Turns) -> Steps:
        queues = yield from self._find(publication, turns)
        inlet, arrival, exchange = publication.inlet, publication.arrival, publication.exchange
        journal, node = self._journal, publication.node
        committing = journal is not None and journal.committing
        full = (
            None if node is None or committing else next((each for each in queues if each.makes_wait), None)
        )
        if full is not None:
            self._waiting[inlet] = full, arrival, partial(self._publish_again, publication)
            full.when_roomy(inlet, self._publish_waiting)
            return
        gathering = _Gathering(publication.origin, turns, self._journal, beyond=committing)
        yield from self._hand_on(queues, inlet, arrival, exchange, publication.keys[0], gathering)

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
        """Hand a message on to queues that were found before, all in this turn, and answer for it.

        Args:
            queues: that it reaches from the exchange; none: it is released.
            beyond: whether queues that would make it wait hold it, as it is part of a transaction that is committed.
            inlet, arrival, exchange, key, origin: as of ``publish``.
        """
        if origin is None:
            origin = origin_of(inlet.peer)
        gathering = _Gathering(origin, ENDLESS, None, beyond=beyond)
        for _ in self._hand_on(queues, inlet, arrival, exchange, key, gathering):
            raise AssertionError("a turn without an end was over")

    def _hand_on(
        self,
        queues: Sequence[Queue],
        inlet: Inlet,
        arrival: Arrival,
        exchange: Exchange,
        key: str,
        gathering: _Gathering,
    ) -> Steps:
        exchange.figures["arrived"] += 1
        if not queues:
            exchange.figures["unroutable"] += 1
            release(arrival)
            return
        marked = arrival.content.published_to(exchange.name, key)
        journal = self._journal
        try:
            yield from gathering.steps(queues, marked)
            if gathering.refusing is not None:
                address = gathering.refusing.address
                refuse(arrival, Condition.RESOURCE_LIMIT_EXCEEDED, f"{address!r} is full")
            elif journal is not None and (journal.committing or _is_stored(queues, marked)):
                if _is_stored(queues, marked):
                    arrival.record_acceptance()
                journal.after(partial(exchange.attempt, inlet, answer, inlet, arrival))
            else:
                accept(arrival)
        finally:
            gathering.release()

    def _find(
        self, publication: _Publication, turns: Turns
    ) -> Generator[Resumer | None, None, Sequence[Queue]]:
        search = self._search(publication.exchange, publication.keys, publication.headers)
        while True:
            try:
                next(search)
            except StopIteration as end:
                found: Sequence[Queue] = end.value
                break
            if turns.is_over():
                yield None
        admits = publication.admits
        if admits is None:
            return found
        admitted: list[Queue] = []
        for queue in found:
            if admits(queue):
                admitted.append(queue)
            if turns.is_over():
                yield None
        return admitted

    def _publish_again(self, publication: _Publication) -> None:
        node, inlet = publication.node, publication.inlet
        if self._take_steps(publication) and node is not None and inlet in node.inlets:
            node.on_arrivals(inlet)


class _Publication:
    """A message on its way through an exchange; see ``Publisher.publish``."""

    __slots__ = ("admits", "arrival", "exchange", "headers", "inlet", "keys", "node", "origin", "then")

    def __init__(
        self,
        inlet: Inlet,
        arrival: Arrival,
        exchange: Exchange,
        keys: Sequence[str],
        headers: Headers,
        admits: Callable[[Queue], bool] | None,
        node: Node | None,
        origin: str,
        then: Callable[[], object],
    ) -> None:
        self.inlet = inlet
        self.arrival = arrival
        self.exchange = exchange
        self.keys = keys
        self.headers = headers
        self.admits = admits
        self.node = node
        self.origin = origin
        self.then = then


class _Gathering:
    """Has queues hold a message.

    Args:
        origin: of the message.
        turns: that this takes.
        journal: through which all of them write in one batch; None if nothing is stored, or all is done in one turn.
        beyond: whether queues hold it that would make it wait.

    Attributes:
        refusing: the first queue that refused it; None if all have it.
    """

    __slots__ = ("_beyond", "_holds", "_journal", "_origin", "_turns", "refusing")

    def __init__(self, origin: str, turns: Turns, journal: Journal | None, *, beyond: bool) -> None:
        self._origin = origin
        self._turns = turns
        self._journal = journal
        self._beyond = beyond
        self._holds = False
        self.refusing: Queue | None = None

    def steps(self, queues: Sequence[Queue], content: Content) -> Steps:
        """Hand the message to all of them; ``release`` ends the batch."""
        journal, is_over = self._journal, self._turns.is_over
        while journal is not None and journal.held and len(queues) > 1 and not journal.committing:
            yield journal.when_free
        beyond = self._beyond
        for number, queue in enumerate(queues, 1):
            if not queue.gather(content, self._origin, beyond=beyond) and self.refusing is None:
                self.refusing = queue
            if is_over() and number < len(queues):
                beyond = True  # it had room when this began
                if journal is not None and not self._holds:
                    self._holds = True
                    journal.hold()
                yield None

    def release(self) -> None:
        """All that belongs in the batch is noted."""
        if self._holds and self._journal is not None:
            self._holds = False
            self._journal.release()


def _take_more(node: Node, inlet: Inlet) -> None:
    if inlet in node.inlets:
        node.attempt(inlet, node.on_arrivals, inlet)


def _is_stored(queues: Sequence[Queue], content: Content) -> bool:
    """Whether any of them has the message written."""
    return any(queue.stores(content) for queue in queues)
