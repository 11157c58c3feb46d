"""BrokerQueue: a queue that a client declared, with its properties and its owner.

An exclusive queue belongs to one connection and is deleted with it; an auto-delete queue is deleted with its last consumer, if
it ever had one. See ``arguments`` for its arguments. A message that comes directly to it was published to the default exchange,
with its name as routing key. Its dead letters go through an exchange (``dead_letter_route``), with their history.

Knows peers and outlets; knows no links.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Protocol

from trio_amqp10.broker.nodes.content import Publication
from trio_amqp10.broker.nodes.queue import Queue

from .arguments import policy_of
from .faults import LockedError, locked, title_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from trio_amqp10.broker.nodes.clock import Clock
    from trio_amqp10.broker.nodes.content import Content, Death
    from trio_amqp10.broker.nodes.entry import Entry
    from trio_amqp10.broker.nodes.message_store import QueueStore
    from trio_amqp10.broker.nodes.node import Arrival, Inlet, Node, Outlet, Peer, SubscriptionTerms


class LetterExchange(Protocol):
    """An exchange for dead letters: see ``Exchange``."""

    def letters_with(self, key: str | None) -> Node:
        """Return the node for dead letters with this key; None: each keeps its own keys."""
        ...


class BrokerQueue(Queue):
    """A declared queue; see ``Queue``.

    Args:
        name: the name of the queue.
        arguments: the arguments of its declaration, which ``check_arguments`` has passed.
        durable, auto_delete: as declared.
        owner: the connection that it is exclusive to; None if it is not exclusive.
        title: its name in texts, as ``title_of`` returns it; None for a queue of the virtual host ``/``.
        clock: the clock by which messages expire.
        on_unused: called when it must be deleted: its last consumer has gone, or it was not used for ``x-expires``.
        on_closed: called when it was deleted for any reason; None for nothing.
        queue_address: returns the address of a queue from its name.
        find_exchange: returns the exchange of a name, or raises ``NotFoundError``; None for a queue without a broker, whose
            dead letters go to an address.
        queue_store: stores its durable messages; None if it does not survive the process.

    Attributes:
        name, arguments, wants_durable, auto_delete, owner, title: as given.
    """

    def __init__(
        self,
        name: str,
        arguments: Mapping[str, Any],
        *,
        durable: bool,
        auto_delete: bool,
        owner: Peer | None,
        title: str | None = None,
        clock: Clock,
        on_unused: Callable[[Queue], object],
        on_closed: Callable[[BrokerQueue], object] | None = None,
        queue_address: Callable[[str], str] = str,
        find_exchange: Callable[[str], LetterExchange] | None = None,
        queue_store: QueueStore | None = None,
    ) -> None:
        policy = policy_of(name, arguments, queue_address)
        super().__init__(
            queue_address(name), policy=policy, clock=clock, queue_store=queue_store, on_unused=on_unused
        )
        self.name = name
        self.title: str = title_of("queue", name) if title is None else title
        self.arguments: Final = dict(arguments)
        self.wants_durable = durable
        self.auto_delete = auto_delete
        self.owner = owner
        self.holds_replies: bool = owner is not None
        self._gone = on_unused
        self._dead_letter = policy.dead_letter
        self._find_exchange = find_exchange
        self._on_closed = on_closed

    @property
    def lasting(self) -> bool:
        """Whether it must survive the process; never for an exclusive queue.

        An exclusive queue ends with its connection.
        """
        return self.wants_durable and self.owner is None

    @property
    def properties(self) -> dict[str, Any]:
        """The properties that a second declaration must repeat."""
        return {"durable": self.wants_durable, "auto_delete": self.auto_delete, **self.arguments}

    def is_own_of(self, peer: Peer) -> bool:
        return self.owner is peer

    def check_owner(self, peer: Peer | None) -> None:
        """Raise ``LockedError`` if it is exclusive to another connection.

        ``peer`` is None for the program itself, which may use all queues.
        """
        if self.owner is not None and peer is not None and self.owner is not peer:
            raise LockedError(locked(self.title))

    def _hold(
        self,
        content: Content,
        origin: str | None,
        inlet: Inlet | None = None,
        arrival: Arrival | None = None,
    ) -> Entry | None:
        return super()._hold(self._published(content, inlet), origin, inlet, arrival)

    def _offer(self, entry: Entry) -> None:
        """Offer a new message; if it has no time to live, only to a waiting consumer."""
        # With a ttl of 0 a message must reach a consumer that can take it now (as in RabbitMQ). The queue's own method
        # would let it expire first. That is right for a message that was delivered before, or has a group.
        over = entry.deadline is not None and entry.deadline <= self._clock.now()
        if over and not entry.turn and entry.group is None and self._dispatch(entry):
            self._on_change()
        else:
            super()._offer(entry)

    def _published(self, content: Content, inlet: Inlet | None) -> Content:
        """Return the message with its publication, if it came directly to the queue.

        A message from an exchange, which has no inlet, has its publication already.
        """
        return content if inlet is None else content.published_to("", self.name)

    def _turn_away(self, content: Content, inlet: Inlet | None = None) -> None:
        super()._turn_away(self._published(content, inlet), inlet)

    def find_dead_letters(self, address: str) -> Node:
        # The program may have changed the policy: then the arguments do not count.
        if self._find_exchange is None or address != self._dead_letter:
            return super().find_dead_letters(address)
        exchange = self._find_exchange(self.arguments["x-dead-letter-exchange"])
        return exchange.letters_with(self.arguments.get("x-dead-letter-routing-key"))

    def publication_of(self, content: Content) -> Publication:
        return content.publication or Publication("", (self.name,))

    def to_dead_letter(
        self, content: Content, reason: Death, condition: str | None, description: str | None
    ) -> Content:
        now = self._clock.wall()
        return content.dead(self.name, reason, now, self.publication_of(content), condition, description)

    @property
    def _consumers_have_some(self) -> bool:
        """Whether another single active consumer must wait; never, as in RabbitMQ.

        The deliveries of the last one stay with its channel.
        """
        return False

    def check_outlet(
        self, peer: Peer, *, copying: bool, target: str | None, subscription_terms: SubscriptionTerms
    ) -> None:
        self.check_owner(peer)
        super().check_outlet(peer, copying=copying, target=target, subscription_terms=subscription_terms)

    def remove_outlet(self, outlet: Outlet) -> None:
        super().remove_outlet(outlet)
        if self.auto_delete and not self.outlets and not self._closed:
            self._gone(self)

    def _go(self) -> None:
        self._gone(self)  # That closes it.

    def close(self) -> None:
        super().close()
        if self._on_closed is not None:
            self._on_closed(self)
