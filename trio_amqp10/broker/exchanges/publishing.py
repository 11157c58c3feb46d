"""Publishing: one message to all queues that an exchange reaches, with one answer.

================================  ================================================================
the result                        the answer
================================  ================================================================
every queue has it                accepted: at once, or, if one of them stores it, after the commit
a queue refused it                rejected, although others may have it
the store failed                  rejected; the queues that store it do not have it
it reached no queue               released
================================  ================================================================

A full queue may make its senders wait (``QueuePolicy.overflow``). A publisher that can wait then waits: the message stays with
it, nothing more is taken from the same inlet, and the message is routed again when there is room. A publisher that cannot
wait, because it has no credit, is refused. A commit of a transaction does not wait: such a queue then exceeds its bound.

All queues write in one commit, so that one callback after it is the last answer of all of them. The commit of a transaction
has checked before whether the message reaches a queue, and whether all these queues have room (``Transaction.commit``).

Work for many queues is divided into steps, so that others have their turn: the publisher waits, and nothing more is taken from
the same inlet. With a store, the steps share a commit anyway.

Knows arrivals and queues; does not know how bindings are found.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from trio_amqp10.broker.nodes.arrival_answers import accept, answer, refuse, release
from trio_amqp10.broker.nodes.message_origin import origin_of
from trio_amqp10.broker.nodes.turns import ENDLESS, finish, guarded, take_steps
from trio_amqp10.core.errors import Condition

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping, Sequence

    from trio_amqp10.broker.nodes.clock import Clock
    from trio_amqp10.broker.nodes.content import Content
    from trio_amqp10.broker.nodes.node import Arrival, Inlet, Node
    from trio_amqp10.broker.nodes.queue import Queue
    from trio_amqp10.broker.nodes.turns import Resumer, Steps, Turns
    from trio_amqp10.broker.stores.group_commit import Journal

    from .exchanges import Exchange
    from .matchers import Headers

    Search = Callable[[Exchange, Sequence[str], Headers], Generator[None, None, Sequence[Queue]]]


def _nothing() -> None: ...


class LazyHeaders:
    """The headers of a message, read once, when an exchange first compares them.

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
        journal: the way to the store; None without a store.
        clock: provides the turns that long work is divided into.
    """

    def __init__(self, search: Search, journal: Journal | None, clock: Clock) -> None:
        self._search = search
        self._journal = journal
        self._clock = clock
        self._waiting: dict[Inlet, tuple[Queue, Arrival, Callable[[], object]]] = {}
        self._next: Inlet | None = (
            None  # Has its turn: one of its messages is taken even if the time is over.
        )
        self._under_way: set[Inlet] = set()
        """Inlets that wait for a later turn.

        Their last message is being given to many queues, or the time of this turn is over.
        """

    @property
    def stores_messages(self) -> bool:
        """Whether a message may have to wait for a store."""
        return self._journal is not None

    def must_wait(self, node: Node, inlet: Inlet) -> bool:
        """Whether nothing may be taken now; ``node.on_arrivals(inlet)`` is called later."""
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

    def waits_for_room(self, inlet: Inlet) -> bool:
        """Whether a message of the inlet waits for room in a queue."""
        return inlet in self._waiting

    def _on_turn(self, node: Node, inlet: Inlet) -> None:
        self._under_way.discard(inlet)
        self._next = inlet
        _take_more(node, inlet)
        self._next = None

    def forget(self, inlet: Inlet) -> None:
        """Release the waiting message of an inlet that has ended."""
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
        """Return the queues that a message reaches; for the arguments see ``publish``."""
        return finish(
            self._search(exchange, (key, *further), LazyHeaders(content) if headers is None else headers)
        )

    def put(self, exchange: Exchange, queue: Queue, content: Content, origin: str) -> bool:
        """Forward a message to the one queue that it reaches; only without a store.

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
        """Forward a message, and answer it: now, or in steps if it reaches many queues.

        Args:
            inlet: the inlet that it came by.
            arrival: the message; gets one answer, now or later.
            exchange: the exchange that it is published to.
            key: its routing key.
            further: more routing keys, those of the headers CC and BCC.
            headers: returns its headers; None to read them from the message.
            admits: tests whether it may go to a queue; None for all queues.
            node: takes more from the inlet when there is room again, or this is done; None if it cannot wait for room.
            origin: the origin of the messages of the inlet; None to compute it.
            then: called when it was forwarded in a later turn.

        Returns:
            Whether it was forwarded, or waits for room. If not, nothing more from this inlet may be forwarded before ``then`` is
            called.
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
            turns = ENDLESS  # A commit is one step and cannot wait.
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
        """Forward a message to queues that were found before, in this turn; answer it.

        Args:
            queues: the queues that it reaches from the exchange; if there is none, it is released.
            beyond: whether full queues that do not reject it hold it, because it is part of a transaction that is committed.
            inlet, arrival, exchange, key, origin: see ``publish``.
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
                refusal = gathering.refusing.refusal_of_room()
                refuse(arrival, Condition(refusal.condition), refusal.description)
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
    """The distribution of one message to several queues.

    Args:
        origin: the origin of the message.
        turns: the turns that it is divided into.
        journal: writes the message of all queues in one batch; None if nothing is stored, or all is done in one turn.
        beyond: whether full queues that do not reject it hold it.

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
        """Give the message to all of them; ``release`` must follow."""
        journal, is_over = self._journal, self._turns.is_over
        while journal is not None and journal.held and len(queues) > 1 and not journal.committing:
            yield journal.when_free
        beyond = self._beyond
        for number, queue in enumerate(queues, 1):
            if not queue.gather(content, self._origin, beyond=beyond) and self.refusing is None:
                self.refusing = queue
            if is_over() and number < len(queues):
                beyond = (
                    True  # The other queues had room when this began, so they must take it in a later turn.
                )
                if journal is not None and not self._holds:
                    self._holds = True
                    journal.hold()
                yield None

    def release(self) -> None:
        """Let the journal write the batch."""
        if self._holds and self._journal is not None:
            self._holds = False
            self._journal.release()


def _take_more(node: Node, inlet: Inlet) -> None:
    if inlet in node.inlets:
        node.attempt(inlet, node.on_arrivals, inlet)


def _is_stored(queues: Sequence[Queue], content: Content) -> bool:
    """Whether any of these queues stores the message."""
    return any(queue.stores(content) for queue in queues)
