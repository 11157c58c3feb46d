"""BrokerQueue: a queue that was declared, with its properties, its owner, and its own end.

An exclusive queue is one connection's and goes with it; an auto-delete queue goes with its last consumer, if it ever
had one. What its arguments mean stands in ``arguments``. What comes straight to it was published to the default exchange,
under its name. Its dead letters go through an exchange (``letters``), with their history.

Knows peers and outlets; knows no links.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Protocol

from trio_amqp10.container.nodes.content import Publication
from trio_amqp10.container.nodes.queue import Queue

from .arguments import policy_of
from .faults import LockedError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from trio_amqp10.container.nodes.clock import Clock
    from trio_amqp10.container.nodes.content import Content, Death
    from trio_amqp10.container.nodes.entry import Entry
    from trio_amqp10.container.nodes.message_store import QueueStore
    from trio_amqp10.container.nodes.node import Arrival, Inlet, Node, Outlet, Peer, SubscriptionTerms

__all__ = ["BrokerQueue", "LetterExchange"]


class LetterExchange(Protocol):
    """An exchange that dead letters go through: see ``Exchange``."""

    def letters_with(self, key: str | None) -> Node:
        """The node for dead letters, with this routing key; with None for those that keep their own."""
        ...


class BrokerQueue(Queue):
    """See ``Queue``.

    Args:
        name: of the queue.
        arguments: as it was declared with; ``check_arguments`` has passed them.
        durable, auto_delete: the same.
        owner: the connection that it is exclusive to; None if it is everybody's.
        clock: what messages expire by.
        on_unused: called when its last consumer has gone and it deletes itself, or it was not used for ``x-expires``.
        on_closed: called when it was deleted, by whatever; None for nothing.
        queue_address: gives the address of a queue from its name.
        find_exchange: gives the exchange of a name, or raises ``NotFoundError``; None for a queue of no broker, whose
            dead letters go to an address.
        queue_store: keeps its durable messages; None if it does not survive the process.

    Attributes:
        name, arguments, wants_durable, auto_delete, owner: as given.
    """

    def __init__(
        self,
        name: str,
        arguments: Mapping[str, Any],
        *,
        durable: bool,
        auto_delete: bool,
        owner: Peer | None,
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
        self.arguments: Final = dict(arguments)
        self.wants_durable = durable
        self.auto_delete = auto_delete
        self.owner = owner
        self._gone = on_unused
        self._dead_letter = policy.dead_letter
        self._find_exchange = find_exchange
        self._on_closed = on_closed

    @property
    def lasting(self) -> bool:
        """Whether it is to survive the process: an exclusive queue never does, as its connection does not."""
        return self.wants_durable and self.owner is None

    @property
    def properties(self) -> dict[str, Any]:
        """What a second declaration is compared with."""
        return {"durable": self.wants_durable, "auto_delete": self.auto_delete, **self.arguments}

    def is_own_of(self, peer: Peer) -> bool:
        return self.owner is peer

    def check_owner(self, peer: Peer | None) -> None:
        """Raise ``LockedError`` if it is another connection's; None is the program itself, which may do all."""
        if self.owner is not None and peer is not None and self.owner is not peer:
            raise LockedError(f"{self.address!r} is exclusive to another connection")

    def _hold(
        self,
        content: Content,
        origin: str | None,
        inlet: Inlet | None = None,
        arrival: Arrival | None = None,
    ) -> Entry | None:
        return super()._hold(self._published(content, inlet), origin, inlet, arrival)

    def _offer(self, entry: Entry) -> None:
        """As of any queue; but a message without any time to live goes to a consumer that can have it now, if there is one."""
        over = entry.deadline is not None and entry.deadline <= self._clock.now()
        if over and not entry.turn and entry.group is None and self._dispatch(entry):
            self._on_change()
        else:
            super()._offer(entry)

    def _published(self, content: Content, inlet: Inlet | None) -> Content:
        """The message that says that it came straight here; through an exchange it comes without an inlet."""
        return content if inlet is None else content.published_to("", self.name)

    def _turn_away(self, content: Content, inlet: Inlet | None = None) -> None:
        super()._turn_away(self._published(content, inlet), inlet)

    def find_dead_letters(self, address: str) -> Node:
        if self._find_exchange is None or address != self._dead_letter:  # the program changed the policy
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
        self._gone(self)  # which closes it

    def close(self) -> None:
        super().close()
        if self._on_closed is not None:
            self._on_closed(self)
